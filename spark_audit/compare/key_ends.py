"""Compare the last value of each key on both sites, whoever wrote it. Pure.

Each direction compares what one site wrote with what arrived of it on the other. How records of
both sites lie among each other on each of them it does not see:

    source  |--K:1--|~~K:2~~|      ends with 2       --- written there
    target  |--K:2--|~~K:1~~|      ends with 1       ~~~ brought from the other site

All is mirrored, nothing is lost, and readers of a compacted topic see another value of K for good.
A key that one site has and the other has not lacks a record there: that is found by direction.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from spark_audit.compare.explain import preview
from spark_audit.compare.judgements import Judgement
from spark_audit.compare.outcomes import Kind
from spark_audit.scan.last_values import EVERY_KEY, Last, LastSink, Slice, latest
from spark_audit.scan.scan import Looking, Reading
from spark_audit.scan.scan_plan import Planner
from spark_audit.scan.windows import LOG_START, LOG_STOP
from spark_audit.snapshot.bounds import PartitionBounds
from spark_audit.snapshot.side import Side

MOST_KEYS: Final = 100_000
"""Of a slice, and of each part of a log: 200 bytes a key, and four parts."""
MOST_SLICE_BITS: Final = 7
"""Keys are compared in up to 128 slices, each of which reads both logs. More are not compared."""
MOST_LISTED: Final = 1_000
"""Of a partition so many keys are named; one row stands for the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEnds:
    """What a worker needs to compare the last values of one partition."""

    topic: str
    partition: int
    planner: Planner
    """Of this partition alone."""
    source_mirrored: int
    """Offset of the source before which all that was written there has arrived on the target."""
    target_mirrored: int
    """The same of the target, where the way back has run."""

    @property
    def bounds(self) -> PartitionBounds:
        """Return the bounds of the partition."""
        return self.planner.partitions[0]


class _End(NamedTuple):
    """How a key ends in a log."""

    last: Last
    written: Last | None
    """Its last record that was written there, and not brought."""

    def is_settled(self, mirrored: int) -> bool:
        """Return whether all records of the key that were written there had arrived by a snapshot.

        Where they have on both sites, both logs hold them all when they are read, and none is to
        come that could change how the key ends.
        """
        return self.written is None or self.written.offset < mirrored

    @property
    def words(self) -> str:
        how = "written" if self.last == self.written else "brought"
        return f"{self.last.words}, {how} there"


@dataclass(frozen=True, slots=True)
class _Ends:
    """The last records of keys in both logs, by part."""

    sinks: Mapping[Side, LastSink]

    @property
    def is_over(self) -> bool:
        return any(sink.is_over for sink in self.sinks.values())

    def source_keys(self) -> Iterator[bytes]:
        """Yield the digests of the keys on the source."""
        written, brought = self.sinks[Side.SOURCE], self.sinks.get(Side.RETURNED)
        yield from written.digests()
        if brought is not None:
            yield from (key for key in brought.digests() if written.last(key) is None)

    def pair(self, key: bytes) -> tuple[_End, _End] | None:
        """Return how a key ends on the source and on the target; None if one has no record."""
        source = self._end(key, written=Side.SOURCE, brought=Side.RETURNED)
        target = self._end(key, written=Side.NATIVE, brought=Side.TARGET)
        return None if source is None or target is None else (source, target)

    def _end(self, key: bytes, *, written: Side, brought: Side) -> _End | None:
        own, other = (
            sink.last(key) if (sink := self.sinks.get(side)) is not None else None
            for side in (written, brought)
        )
        last = latest(own, other)
        return None if last is None else _End(last, own)

    def name(self, key: bytes) -> bytes | None:
        """Return the beginning of a wanted key."""
        return next((sink.names[key] for sink in self.sinks.values() if key in sink.names), None)


@dataclass(slots=True)
class _Told:
    """What was said of keys so far."""

    alike: int = 0
    in_flight: int = 0
    beyond: list[Slice] = field(default_factory=list)
    listed: list[Judgement] = field(default_factory=list)
    unlisted: int = 0
    first_unlisted: tuple[int, int] | None = None

    def add(self, one: Judgement) -> None:
        """Take a key that ends differently."""
        if len(self.listed) < MOST_LISTED:
            self.listed.append(one)
            return
        self.unlisted += 1
        if self.first_unlisted is None:
            assert one.source_offset is not None, "the key has a record on the source"
            assert one.target_offset is not None, "the key has a record on the target"
            self.first_unlisted = one.source_offset, one.target_offset


def compare_ends(question: KeyEnds) -> Looking[list[Judgement]]:
    """Return what is said of the last values of a partition's keys.

    Both logs are read up to their ends by then, which lie behind those of all snapshots: so what
    had arrived by a snapshot is seen. Keys that differ are looked at once more, with a second pass.
    """
    told = _Told()
    slices = [EVERY_KEY]
    while slices:
        part = slices.pop()
        ends = _Ends({side: LastSink(MOST_KEYS, part) for side in _sides(question.bounds)})
        yield _readings(question, ends)
        if not ends.is_over:
            yield from _compare(question, ends, told)
        elif part.bits < MOST_SLICE_BITS:
            slices += part.halves()
        else:
            told.beyond.append(part)
    return list(_judgements(told))


def _sides(bounds: PartitionBounds) -> tuple[Side, ...]:
    """Return the parts of both logs that have to be read.

    Where one direction alone has run, all of the source was written there, and all of the target
    counts as brought: a stranger's record as well, which has no way to the source.
    """
    if bounds.is_both_ways:
        return (Side.SOURCE, Side.RETURNED, Side.TARGET, Side.NATIVE)
    return (Side.SOURCE, Side.TARGET)


def _readings(question: KeyEnds, ends: _Ends) -> list[Reading]:
    bounds = question.bounds
    return [
        Reading(
            task=question.planner.stretch(
                bounds,
                side,
                LOG_START,
                LOG_STOP,
                to_end=bounds.is_both_ways and (side is not Side.TARGET or bounds.seal is None),
            ),
            sink=sink,
        )
        for side, sink in ends.sinks.items()
    ]


def _compare(question: KeyEnds, ends: _Ends, told: _Told) -> Looking[None]:
    """Add up the keys of a slice, and look once more at those that seem to end differently."""
    differing: dict[bytes, tuple[int, int]] = {}
    for key in ends.source_keys():
        pair = ends.pair(key)
        if pair is None:
            continue
        source, target = pair
        if source.last.value == target.last.value:
            told.alike += 1
        elif source.is_settled(question.source_mirrored) and target.is_settled(
            question.target_mirrored
        ):
            differing[key] = source.last.offset, target.last.offset
        else:
            told.in_flight += 1
    if not differing:
        return
    again = _Ends({side: LastSink(len(differing), wanted=differing) for side in ends.sinks})
    yield _readings(question, again)
    for key, offsets in sorted(differing.items(), key=lambda found: found[1]):
        pair = again.pair(key)
        if pair is None or (pair[0].last.offset, pair[1].last.offset) != offsets:
            told.in_flight += 1
        else:
            told.add(_differs(question.bounds, again.name(key), *pair))


def _differs(bounds: PartitionBounds, name: bytes | None, source: _End, target: _End) -> Judgement:
    reason = f"on the source the key ends with {source.words}, on the target with {target.words}"
    if bounds.is_set_aside(source.last.offset):
        reason += "; the source's was set aside"
    return Judgement(
        Kind.ENDS_DIFFERENTLY,
        source.last.offset,
        target.last.offset,
        1,
        source.last.timestamp_ms,
        preview(name),
        reason,
    )


def _judgements(told: _Told) -> Iterator[Judgement]:
    yield from told.listed
    if told.first_unlisted is not None:
        yield Judgement(
            Kind.ENDS_DIFFERENTLY,
            *told.first_unlisted,
            told.unlisted,
            None,
            None,
            f"so many more keys end differently than the {MOST_LISTED:,} that are listed",
        )
    for kind, keys in ((Kind.KEYS_ALIKE, told.alike), (Kind.KEYS_IN_FLIGHT, told.in_flight)):
        if keys:
            yield Judgement(kind, None, None, keys, None, None, "")
    if told.beyond:
        yield keys_not_compared(
            len(told.beyond) * MOST_KEYS,
            f"{len(told.beyond)} of {1 << MOST_SLICE_BITS} slices of the keys have more than "
            f"{MOST_KEYS:,} each: last values there are not compared",
        )


def keys_not_compared(keys: int, reason: str) -> Judgement:
    """Return what says that the last values of so many keys, at least, are not known."""
    return Judgement(Kind.KEYS_NOT_COMPARED, None, None, keys, None, None, reason)


def mirrored_before(judged: list[Judgement], bounds: PartitionBounds) -> int | None:
    """Return the source offset before which all has arrived; None if not all was compared."""
    if any(one.kind is Kind.NOT_COMPARED for one in judged):
        return None
    waiting = [
        one.source_offset
        for one in judged
        if one.kind is Kind.IN_FLIGHT and one.source_offset is not None
    ]
    return min(waiting, default=bounds.source.stop)
