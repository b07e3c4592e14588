"""The position at which MirrorMaker 2 has stopped, and a map of what it has mirrored. Pure.

MirrorMaker commits its position once a minute, so its target may hold records behind the last
commit. The logs say which: the target's last records are found again in the source, and the records
before them as far as both logs agree. MirrorMaker's Connect offsets only say where to look. Of
earlier records only MirrorMaker's offset syncs are known, each of which tells where one record lies
on both sides:

    source   ..u......v.....[===agreed===]s        s: the first record that is not mirrored
    target   ..d......e.....[===agreed===]T        T: the target's log end

    a position up to u is the target's log start, one between u and v is d + 1, as MirrorMaker
    itself translates; in the agreed part, and from there on, positions are exact

The map takes the records in between for the target's own, between two runs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from offset_translation.map_records import piece_start, run_start
from offset_translation.offset_sync import OffsetSync
from offset_translation.rebuilding import CannotAlign, LogDigest, matches
from offset_translation.runs import Place
from wire.topic_partition import TopicPartition
from wire.values import frozen

LOOKED_FOR: Final = 1_000
"""So many records at the target's end are looked for in the source, at most."""
MOST_SYNCS: Final = 500
"""So many of a partition are kept, evenly thinned; each costs two records of the map."""


@frozen
class SharedTail:
    """The last records of the target, and the same ones of the source: offsets in pairs."""

    source: Sequence[int]
    target: Sequence[int]

    @property
    def goes_on(self) -> int:
        """The source offset behind the last of them."""
        return self.source[-1] + 1


def find_agreed(source: LogDigest, target: LogDigest) -> SharedTail:
    """Return what both logs agree on at the target's end; one record at the least.

    ``target`` are the target's last records, ``source`` the source's from before them and to its
    end. The longest end of the target that is found decides: MirrorMaker may have repeated records
    in it. Raises CannotAlign if none is found, or in more than one place.
    """
    length = min(len(target), LOOKED_FOR)
    while length:
        wanted = target.digests[len(target) - length :]
        found = list(matches(source.digests, wanted, may_overhang=False))
        if len(found) > 1:
            first, second = (source.offsets[index + length - 1] for index in found[:2])
            raise CannotAlign(
                f"the target's last {length} records end at source offset {first} or {second}"
            )
        if found:
            return _extended(source, target, found[0] + length)
        length //= 2
    raise CannotAlign("the target's last record is not in the source where it would have to be")


def _extended(source: LogDigest, target: LogDigest, source_stop: int) -> SharedTail:
    """Return all that is equal before the target's end and this place in the source."""
    here, there = source_stop, len(target)
    while here and there and source.digests[here - 1] == target.digests[there - 1]:
        here, there = here - 1, there - 1
    return SharedTail(source=source.offsets[here:source_stop], target=target.offsets[there:])


@frozen
class Seed:
    """One partition that MirrorMaker has mirrored so far."""

    partition: TopicPartition
    agreed: SharedTail
    target_start: int
    target_end: int


def seed_records(seed: Seed, syncs: Iterable[OffsetSync]) -> list[tuple[bytes, bytes]]:
    """Return the map's records for a partition."""
    records: list[tuple[bytes, bytes]] = []
    source_shift: int | None = None
    target_shift = 0
    for number, (source, target) in enumerate(_known(seed, syncs), start=seed.target_start):
        if source - number != source_shift:
            source_shift = source - number
            records.append(piece_start(*seed.partition, source_start=source, place=Place(number)))
        if target - number != target_shift:
            target_shift = target - number
            records.append(run_start(*seed.partition, place=Place(number), target_start=target))
    return records


def _known(seed: Seed, syncs: Iterable[OffsetSync]) -> Iterator[tuple[int, int]]:
    """Yield where records lie on source and target, and at last where the next ones will."""
    agreed = seed.agreed
    chain: list[tuple[int, int]] = []
    for sync in sorted(syncs, key=lambda one: one.downstream_offset):
        source, target = sync.upstream_offset, sync.downstream_offset
        is_before = 0 <= source < agreed.source[0] and seed.target_start <= target
        is_further = not chain or (source > chain[-1][0] and target > chain[-1][1])
        if (
            (sync.topic, sync.partition) == seed.partition
            and is_before
            and is_further
            and target < agreed.target[0]
        ):
            chain.append((source, target))
    yield from chain[:: len(chain) // MOST_SYNCS + 1]
    yield from zip(agreed.source, agreed.target, strict=True)
    yield agreed.goes_on, seed.target_end
