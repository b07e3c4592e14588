"""Who walks chunks and reads runs: the kernel, if there is one that passes a trial; else Python."""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Final, NamedTuple, Protocol

from wire.hot import produce_run
from wire.hot.produce_run import PlainBatch, PlainRequest, ProduceRun
from wire.primitives import pack_unsigned_varint
from wire.record_batch import passing
from wire.record_batch.building import build_batch
from wire.record_batch.passing import OneT, PassingTerms
from wire.record_batch.reading import Record

VERSION: Final = 2
"""Of a kernel that does the same as `passing` and `produce_run`; chunk.c has it, too."""
SWITCHED_OFF: Final = "switched off"


class PassOn(Protocol):
    """What `wire.record_batch.passing.pass_on` is."""

    def __call__(
        self,
        view: memoryview,
        position: int,
        source: int,
        place: int,
        terms: PassingTerms,
        kind: type[OneT],
        /,
    ) -> tuple[int, int, int, list[OneT]]:
        """Pass on plain batches."""


class ReadRun(Protocol):
    """What `wire.hot.produce_run.read_run` is."""

    def __call__(
        self, view: memoryview, start: int, end: int, largest_frame: int, most_requests: int, /
    ) -> ProduceRun | None:
        """Read a run of plain Produce requests."""


class Walker(NamedTuple):
    """A way to walk a chunk, and to read a run."""

    pass_on: PassOn
    needs_no_rebuilding: Callable[[memoryview, int], bool]
    """Whether a chunk may be written to while it is walked: nobody will look at it again."""
    read_run: ReadRun
    is_native: bool
    words: str
    """Native code with which checksums, or Python and why."""


def in_python(why: str) -> Walker:
    """Return the walker in Python, which never writes to a chunk."""
    return Walker(
        pass_on=passing.pass_on,
        needs_no_rebuilding=lambda _view, _source: True,
        read_run=produce_run.read_run,
        is_native=False,
        words=f"Python ({why})",
    )


@cache
def native() -> Walker:
    """Return the kernel, or Python if there is none that can be trusted."""
    try:
        _chunk = import_module("wire.kernel._chunk")
        theirs = getattr(_chunk, "VERSION", "nameless")
        if theirs != VERSION:
            return in_python(f"the chunk kernel is of version {theirs} instead of {VERSION}")
        if _trial(_chunk.pass_on) != _trial(passing.pass_on):
            return in_python("the chunk kernel does not do what Python does")
        read_run = partial(_chunk.read_run, (ProduceRun, PlainRequest, PlainBatch))
        if _trial_of_runs(read_run) != _trial_of_runs(produce_run.read_run):
            return in_python("the chunk kernel does not read what Python reads")
    except ModuleNotFoundError:
        return in_python("the chunk kernel was not built")
    except Exception as fault:  # noqa: BLE001 - whatever is wrong with it, Python does the same
        return in_python(f"the chunk kernel: {fault}")
    return Walker(
        pass_on=_chunk.pass_on,
        needs_no_rebuilding=_chunk.needs_no_rebuilding,
        read_run=read_run,
        is_native=True,
        words=f"native code (checksums: {_chunk.WAYS[-1]})",
    )


def walker(*, may_be_native: bool) -> Walker:
    """Return who walks chunks."""
    return native() if may_be_native else IN_PYTHON


IN_PYTHON: Final = in_python(SWITCHED_OFF)


class _Row(NamedTuple):
    place: int
    record_count: int
    source_end: int
    newest: int
    size: int
    parts: tuple[bytes | memoryview, ...]
    joined: int
    arrived_ms: int


def _trial(pass_on: PassOn) -> object:
    """Return what becomes of a chunk with batches of each kind, the last one damaged."""
    chunk = bytearray()
    for offset, times in ((0, (5,)), (1, (6, 200)), (3, (7, 8)), (5, (9,) * 700), (705, (1,))):
        records = [
            Record(offset + number, time, b"key", bytes(40)) for number, time in enumerate(times)
        ]
        chunk += build_batch(records, base_offset=offset, producer_id=1, producer_epoch=0)
    chunk[-1] ^= 1
    terms = PassingTerms(0, 0x20, frozenset({4}), 4, 77, 1, 9)
    *ends, rows = pass_on(memoryview(chunk), 0, 0, 0, terms, _Row)
    return ends, [row._replace(parts=tuple(map(bytes, row.parts))) for row in rows]


def _trial_of_runs(read_run: ReadRun) -> object:
    """Return the run in frames of which the second is plain, too, and the third is damaged."""
    record = Record(0, 5, b"key", bytes(40))
    batch = build_batch([record], producer_id=1, producer_epoch=0, base_sequence=3)
    before = b"\0\0\0\x0b\0\0\0\x07\xff\xff\0\0\xff\xff\0\0\x75\x30\x02\x02t\x02\0\0\0\x09"
    frame = before + pack_unsigned_varint(len(batch) + 1) + batch + bytes(3)
    frame = len(frame).to_bytes(4) + frame
    damaged = frame[:-4] + b"\1" + frame[-3:]
    return read_run(memoryview(frame * 2 + damaged), 0, 2 * len(frame) + len(damaged), 1_000, 9)
