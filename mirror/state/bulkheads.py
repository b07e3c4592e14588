"""Errors that nobody has foreseen: each stops the one partition it is met in, by name.

A fault of the network is foreseen, and what meets it goes on its way. Everything else that is
raised in the work on one partition is an error of the mirror's own, or data that no broker ought to
hold. The partition stops as `failed`, the log has the traceback, and all others go on.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

from mirror.state.flow_state import FlowState
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from runtime.clock import now_ms
from runtime.fault_note import FaultNote
from wire.net.errors import NetworkFault

_LOG = logging.getLogger(__name__)

AGAIN_S: Final = 1.0
"""A task that an error has ended begins anew after this long."""


def described(fault: Exception) -> str:
    """Return type and text of an error, and of the first in a group."""
    first: BaseException = fault
    while isinstance(first, ExceptionGroup):
        first = first.exceptions[0]
    return f"{type(first).__name__}: {first}".removesuffix(": ")


@contextmanager
def contained(flow: FlowState, partition: MirroredPartition, doing: str) -> Iterator[None]:
    """Stop the partition by whatever is unforeseen in this block; raises NetworkFault only."""
    try:
        yield
    except NetworkFault:
        raise
    except Exception as fault:  # noqa: BLE001 - what is unforeseen has no type
        stop_as_failed(flow, partition, doing, fault)


def stop_as_failed(
    flow: FlowState,
    partition: MirroredPartition,
    doing: str,
    fault: Exception,
    *,
    source_end: int | None = None,
) -> None:
    """Stop a partition, with the traceback in the log; a skip would go on at ``source_end``."""
    reason = f"{doing}: {described(fault)}"
    _LOG.error("%s: failed: %s", partition.topic_partition, reason, exc_info=fault)
    flow.stop(partition, PartitionState.FAILED, reason, now_ms(), source_end=source_end)


async def keep_at_work(task: Callable[[], Awaitable[None]], fault: FaultNote) -> None:
    """Run a task of a flow; begin it anew when an error ends it, which ``fault`` shows meanwhile.

    Its work on single partitions, groups and topics is contained: this is for the rest.
    """
    while True:
        try:
            await task()
        except Exception as unforeseen:  # noqa: BLE001 - what is unforeseen has no type
            what = getattr(task, "__qualname__", repr(task))
            fault.note(f"{what} failed and begins anew: {described(unforeseen)}", what)
            _LOG.exception("%s failed and begins anew", what)
            await trio.sleep(AGAIN_S)
        else:
            return
