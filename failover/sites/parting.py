"""Where the logs of both sites part, of a partition whose source is not the log that was mirrored.

    source  |--aaaa--|--cccccc--|     it was cut behind a, and c was acknowledged since
    target  |--aaaa--|--bbb--|        b was mirrored before, and is nowhere else any more

The map speaks of b. By its offsets c is on the target as far as b goes, and b is on the source. The
last mirrored record tells that it is not so. A log is cut at one offset: what lies before agrees,
and nothing behind does. So that offset is found by halving.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from failover.sites.map_follower import MapFollower
from failover.sites.other_log import compare_records, find_recreated_copies, made_again
from failover.sites.site import Site
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from wire.topic_partition import TopicPartition


class Parting(NamedTuple):
    """The offsets on both sides from which on their logs are not the same, though the map says so.

    Before `source` everything of the source is on the target.
    """

    source: int
    target: int


class _Within(NamedTuple):
    """The first place at which the logs differ is one of these, `last` if no earlier one is."""

    first: Place
    last: Place


async def find_partings(
    source: Site, follower: MapFollower, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, Parting]:
    """Return where the logs part, of those partitions of which the map speaks of another log.

    The topic was made again on either site, or the source's log ends before what was mirrored, or
    holds another record than the last one that was. `follower` has been refreshed. Partitions that
    one site does not have are left out. Raises NetworkFault, also where a log does not tell its
    end.
    """
    known = [one for one in partitions if follower.knows(one) and one in follower.target_ends]
    ends = await _ends(source, follower, known)
    again = made_again(follower.topic_ids, await source.topic_ids({topic for topic, _ in ends}))
    copies_again = await find_recreated_copies(follower, ends)
    maps = {one: follower.maps[one] for one in ends}
    differing = {
        one: maps[one].first_place for one in ends if one.topic in again or one in copies_again
    }
    lasts = {one: _behind_last(maps[one], end) for one, end in ends.items() if one not in differing}
    differing |= {
        one: behind
        for one, behind in lasts.items()
        if ends[one] < (follower.mirrored_end(one) or 0)
    }
    differing |= await _first_differing(source, follower, lasts)
    return {one: _parting(maps[one], place) for one, place in sorted(differing.items())}


async def _ends(
    source: Site, follower: MapFollower, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return where the source's logs end; a new leader may know of less as committed than it has.

    Raises NetworkFault.
    """
    ends = await source.known_ends(partitions)
    short = [one for one, end in ends.items() if end < (follower.mirrored_end(one) or 0)]
    whole = await source.whole_ends(short) if short else {}
    return {one: max(end, whole.get(one, 0)) for one, end in ends.items()}


def _behind_last(offset_map: OffsetMap, source_end: int) -> Place:
    """Return the place behind the last mirrored record before an offset of the source."""
    place = offset_map.place_of_source(source_end)
    return offset_map.place_end if place is None else place


async def _first_differing(
    source: Site, follower: MapFollower, behind: Mapping[TopicPartition, Place]
) -> dict[TopicPartition, Place]:
    """Return the first place at which both logs differ, where the record before a place does.

    Once the logs are known to differ, a record that one of them does not hold any more counts as
    another one: rather too much is named than too little. Raises NetworkFault.
    """
    maps = {one: follower.maps[one] for one in behind}
    lasts = {
        one: Place(place - 1) for one, place in behind.items() if place > maps[one].first_place
    }
    told = await compare_records(source, follower, _offsets(maps, lasts))
    differing = [one for one, is_same in told.items() if is_same is False]
    if not differing:
        return {}
    starts = await source.starts(differing)
    target_starts = await follower.target.starts(differing)
    open_: dict[TopicPartition, _Within] = {
        one: _Within(_first_held(maps[one], starts[one], target_starts[one]), lasts[one])
        for one in differing
    }
    found: dict[TopicPartition, Place] = {}
    while open_:
        found |= {one: within.last for one, within in open_.items() if within.first >= within.last}
        open_ = {one: within for one, within in open_.items() if one not in found}
        middle = {one: Place((first + last) // 2) for one, (first, last) in open_.items()}
        told = await compare_records(source, follower, _offsets(maps, middle))
        for one, place in middle.items():
            first, last = open_[one]
            is_same = told.get(one) is True
            open_[one] = _Within(Place(place + 1), last) if is_same else _Within(first, place)
    return found


def _first_held(offset_map: OffsetMap, source_start: int, target_start: int) -> Place:
    """Return the place of the first record that neither log has deleted from its start on."""
    at_source = offset_map.place_of_source(source_start)
    on_target = offset_map.place_of_target(target_start)
    return max(offset_map.first_place, on_target, on_target if at_source is None else at_source)


def _offsets(
    maps: Mapping[TopicPartition, OffsetMap], places: Mapping[TopicPartition, Place]
) -> dict[TopicPartition, tuple[int, int]]:
    """Return the offsets of places on both sides, of those that have any."""
    return {
        one: (at_source, maps[one].runs.start_of(place))
        for one, place in places.items()
        if (at_source := maps[one].source_of_place(place)) is not None
    }


def _parting(offset_map: OffsetMap, place: Place) -> Parting:
    """Return the offsets from which on both logs differ, by the first place that does.

    The source may hold new records from the last one on that agrees. Where none agrees, it may from
    its beginning on.
    """
    before = offset_map.source_of_place(Place(place - 1)) if place > offset_map.first_place else -1
    assert before is not None, "a place behind the first one is known"
    return Parting(source=before + 1, target=offset_map.runs.start_of(place))
