"""The chunk kernel as it is compiled out of chunk.c, crc32c.c and produced.c."""

from typing import Final, TypeVar

from wire.hot.produce_run import PlainBatch, PlainRequest, ProduceRun
from wire.record_batch.passing import PassingTerms

OneT = TypeVar("OneT", bound=tuple[object, ...])

VERSION: Final[int]
"""Of what calls take and return, and of which bytes come out."""
WAYS: Final[tuple[str, ...]]
"""How this processor can compute checksums, the fastest last: that one is used."""

def pass_on(
    view: memoryview,
    position: int,
    source: int,
    place: int,
    terms: PassingTerms,
    kind: type[OneT],
    /,
) -> tuple[int, int, int, list[OneT]]:
    """Do what `wire.record_batch.passing.pass_on` does. Of a view that may be written to, joined
    batches are made in place: what the chunk holds there is no source's batch any more.
    """

def needs_no_rebuilding(view: memoryview, source: int, /) -> bool:
    """Say whether no batch from ``source`` on has to be taken apart, by the headers alone."""

def read_run(
    kinds: tuple[type[ProduceRun], type[PlainRequest], type[PlainBatch]],
    view: memoryview,
    start: int,
    end: int,
    largest_frame: int,
    most_requests: int,
    /,
) -> ProduceRun | None:
    """Do what `wire.hot.produce_run.read_run` does; ``kinds`` is what it makes instances of."""

def checksum(data: bytes | memoryview, before: int, way: int, /) -> int:
    """Return the CRC-32C of ``data`` behind that of what lies before it, by one of the ways."""
