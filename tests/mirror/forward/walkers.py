"""Routing by every walker that there is: they have to decide alike."""

from typing import Any

from mirror.forward.routing import Routed, route
from mirror.state.batches import Cursor
from wire.kernel.chosen import IN_PYTHON, native


def route_by_all(chunk: bytes, cursor: Cursor, **given: Any) -> Routed:
    """Return what becomes of a chunk, once it is the same with the kernel, in place and not."""
    routed = route(chunk, cursor, walker=IN_PYTHON, **given)
    for same in (chunk, bytearray(chunk)):
        assert told(route(same, cursor, walker=native(), **given)) == told(routed)
    return routed


def told(routed: Routed) -> tuple[object, ...]:
    """Return all that was decided, with the bytes of each batch."""
    forwards = [one._replace(parts=tuple(map(bytes, one.parts))) for one in routed.forwards]
    decided = (routed.starts, routed.cursor, routed.left_out, routed.looped, routed.rebuilt)
    faults = (routed.corrupt, repr(routed.unforeseen), routed.behind_fault, routed.is_heavy)
    return forwards, *decided, *faults
