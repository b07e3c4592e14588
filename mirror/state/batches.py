"""Batches on their way, and the cursor of a partition in the mirrored stream."""

from typing import NamedTuple, TypeAlias

from offset_translation.runs import Place
from wire.schema import Piece

PieceStart: TypeAlias = tuple[int, Place]
"""(source offset, place) at which a piece begins."""


class Cursor(NamedTuple):
    """The position of a partition: the next source offset to read and the place it gets.

    ``shift`` is source minus place on the piece announced last.
    """

    source: int
    place: Place
    shift: int


class Forward(NamedTuple):
    """One batch for the target, as the parts that travel."""

    place: Place
    record_count: int
    source_end: int
    """Everything before it is on the target once this batch is there."""
    max_timestamp: int
    size: int
    parts: tuple[Piece, ...]
    joined: int = 1
    """Batches of the source in it."""
    arrived_ms: int = 0
    """When the chunk that it came with was fetched."""
