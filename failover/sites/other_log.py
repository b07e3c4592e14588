"""Find sources whose log is another one than the map speaks of.

    mirrored  |--aaaaaaaa--|     before the topic was made again, or the source lost its tail
    source    |--bbbb--|         what is there now is not on the target, and seems to be

Such a log ends before what was mirrored, so its offsets say that nothing is missing, and the map
would translate positions by records that are gone. The mirror stops there (`topic recreated`,
`source went back`), and no promotion may go on as if it had all. A log that has grown again since
shows by the last record that both sites should have: a mirror that has just begun may not have told
of it yet.
"""

from collections.abc import Collection, Mapping
from functools import partial
from uuid import UUID

from failover.journal.execute import StepFailed
from failover.sites.foreign_writers import last_batches, portions, record_at
from failover.sites.map_follower import MapFollower
from failover.sites.site import LogUnavailable, Site
from offset_translation.runs import Place
from offset_translation.topic_identity import NO_ID, is_recreated
from runtime.set_option import set_option
from wire.net.held_batches import HeldBatch
from wire.net.side_by_side import ask_both
from wire.record_batch import is_same_record
from wire.topic_partition import TopicPartition


def beyond(
    mirrored: Mapping[TopicPartition, int | None], ends: Mapping[TopicPartition, int]
) -> tuple[TopicPartition, ...]:
    """Return the partitions mirrored further than these ends, in order."""
    return tuple(
        partition
        for partition, reached in sorted(mirrored.items())
        if (reached or 0) > ends[partition]
    )


def made_again(known: Mapping[str, UUID], seen: Mapping[str, UUID]) -> tuple[str, ...]:
    """Return the topics that have another id than was mirrored, in order."""
    return tuple(
        name for name, topic_id in sorted(seen.items()) if is_recreated(known.get(name), topic_id)
    )


async def find_shorter_logs(
    source: Site, follower: MapFollower, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, str]:
    """Return the partitions of which more is mirrored than the source has, and what to do for each.

    `follower` has been refreshed. Where more is mirrored than lies before `ends`, the source is
    asked where its leader's log ends now: markers of transactions may have come since and been
    mirrored, and a new leader may know of less as committed than the old one has told. Raises
    LogUnavailable for the first partition that does not tell, and NetworkFault.
    """
    mirrored = {partition: follower.mirrored_end(partition) for partition in ends}
    doubtful = beyond(mirrored, ends)
    if not doubtful:
        return {}
    whole = await source.whole_ends(doubtful)
    for partition in doubtful:
        if partition not in whole:
            raise LogUnavailable(f"{source.name} {partition} does not tell where it ends")
    return {
        partition: f"{source.name} {partition} ends at {whole[partition]},"
        f" but {mirrored[partition]} offsets of it are mirrored: {source.name} has lost"
        f" records, or others have written to {follower.target_name};"
        f" {_advice(source, follower, partition.topic)}"
        for partition in beyond({partition: mirrored[partition] for partition in doubtful}, whole)
    }


async def find_other_logs(
    source: Site, follower: MapFollower, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, str]:
    """Return find_shorter_logs(), and the partitions whose topic was made again on the source.

    Raises what find_shorter_logs() raises.
    """
    shorter = await find_shorter_logs(source, follower, ends)
    seen = await source.topic_ids({topic for topic, _ in ends})
    again = made_again(follower.topic_ids, seen)
    others = {
        partition: f"{source.name} {partition} was made again since it was mirrored (topic id"
        f" {seen[partition.topic]}, not {follower.topic_ids[partition.topic]}): it ends at {end},"
        f" and {follower.mirrored_end(partition) or 0} offsets of the former one are mirrored;"
        f" {_advice(source, follower, partition.topic)}"
        for partition, end in ends.items()
        if partition.topic in again
    }
    return dict(sorted({**shorter, **others}.items()))


async def find_regrown_logs(
    source: Site, follower: MapFollower, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, str]:
    """Return the partitions whose last mirrored record is another one on the source.

    `follower` has been refreshed. A record that one site does not hold any more is not compared.
    Raises NetworkFault.
    """
    places = {
        partition: place
        for partition in partitions
        if (place := _last_place(follower, partition)) is not None
    }
    return {
        partition: _describe_regrown(source, follower, partition, places[partition])
        for partition, is_same in (await compare_records(source, follower, places)).items()
        if is_same is False
    }


async def compare_records(
    source: Site, follower: MapFollower, places: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, bool | None]:
    """Tell whether both sites hold the same record at these offsets of the source and the target.

    None is the answer where one of them does not hold it any more. Partitions of which one log does
    not reach as far on either side are left out. Raises NetworkFault.
    """
    target = follower.target
    (starts, ends), target_starts = await ask_both(
        partial(ask_both, partial(source.starts, places), partial(source.ends, places)),
        partial(target.starts, places),
    )
    compared = [
        partition
        for partition, (at_source, at_target) in sorted(places.items())
        if starts[partition] <= at_source < ends[partition]
        and target_starts[partition] <= at_target < follower.target_ends.get(partition, 0)
    ]
    told: dict[TopicPartition, bool | None] = {}
    for some in portions(compared):
        held, mirrored = await ask_both(
            partial(last_batches, source, {one: places[one][0] + 1 for one in some}),
            partial(last_batches, target, {one: places[one][1] + 1 for one in some}),
        )
        for partition in some:
            both = mirrored[partition], held[partition]
            told[partition] = _is_same_record(source, follower, partition, places[partition], both)
    return told


def _is_same_record(
    source: Site,
    follower: MapFollower,
    partition: TopicPartition,
    place: tuple[int, int],
    batches: tuple[HeldBatch | None, HeldBatch | None],
) -> bool | None:
    """Tell whether the sites hold the same record at a place, by their batches there.

    A marker of a transaction on the source is no record that was mirrored. Raises SiteUnclear.
    """
    mirrored, held = batches
    if mirrored is None or held is None:
        return None
    at_source, at_target = place
    ours = record_at(follower.target, partition, mirrored[1], at_target)
    if ours is None:
        return None
    if held[0].is_control:
        return False
    theirs = record_at(source, partition, held[1], at_source)
    is_stamped = mirrored[0].is_log_append_time or held[0].is_log_append_time
    return None if theirs is None else is_same_record(ours, theirs, is_stamped=is_stamped)


def _describe_regrown(
    source: Site, follower: MapFollower, partition: TopicPartition, place: tuple[int, int]
) -> str:
    at_source, at_target = place
    return (
        f"{source.name} {partition} holds another record at offset {at_source} than"
        f" {follower.target_name} at {at_target}, although the one came from the other: a log"
        f" was cut, and has grown again; {_advice(source, follower, partition.topic)}"
    )


def _last_place(follower: MapFollower, partition: TopicPartition) -> tuple[int, int] | None:
    """Return where the last mirrored record lies on both sides, None where none is known."""
    offset_map = follower.maps.get(partition)
    if not offset_map:
        return None
    place = Place(offset_map.place_end - 1)
    at_source = offset_map.source_of_place(place) if place >= offset_map.first_place else None
    return None if at_source is None else (at_source, offset_map.runs.start_of(place))


async def find_recreated_copies(
    follower: MapFollower, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, str]:
    """Return the partitions whose topic was made again on the target since it was mirrored.

    `follower` has been refreshed. Raises NetworkFault.
    """
    target = follower.target
    seen = await target.topic_ids({topic for topic, _ in partitions})
    return {
        partition: f"{target.name} {partition} was made again since it was mirrored (topic id"
        f" {now}, not {known}): {target.name} has lost what was mirrored before;"
        f" {_begin_anew(follower, partition.topic)}"
        for partition in sorted(partitions)
        if is_recreated(
            known := follower.target_ids.get(partition), now := seen.get(partition.topic, NO_ID)
        )
    }


async def find_other_copies(
    follower: MapFollower, sealed: Mapping[TopicPartition, int]
) -> dict[TopicPartition, str]:
    """Return the partitions that are not as they were sealed on the target, and how they differ.

    The seal was written where the target's log ended. Somebody has written there since where it
    ends behind that. Where it ends before, or its topic was made again, what was mirrored is gone.
    Raises what `Site.known_ends` raises.
    """
    target = follower.target
    ends = await target.known_ends(sealed)
    seen = await target.topic_ids({topic for topic, _ in sealed})
    found: dict[TopicPartition, str] = {}
    for partition, end in sorted(sealed.items()):
        where, now = f"{target.name} {partition} was sealed at {end}", ends.get(partition, 0)
        if now > end:
            found[partition] = (
                f"{where} and ends at {now}: somebody writes to {target.name}, the standby"
            )
        elif now < end:
            found[partition] = (
                f"{where} and ends at {now}: {target.name} has lost what was mirrored"
            )
        elif is_recreated(follower.target_ids.get(partition), seen.get(partition.topic, NO_ID)):
            found[partition] = (
                f"{where}, and the topic was made again since: {target.name} has lost what was"
                " mirrored"
            )
    return found


def _begin_anew(follower: MapFollower, topic: str) -> str:
    if follower.unbelieved is not None:
        return f"before anything is deleted: {follower.unbelieved}"
    source, target = follower.source_name, follower.target_name
    of_set = set_option(follower.topic_set)
    return (
        f"`mirror restart {source}-{target} {topic} --from-earliest{of_set}` begins it anew; where"
        f" {source} holds records that came from {target}, that is refused, and"
        f" `mirror refill {target} --write` does it, once every mirror is stopped"
    )


def first_of(found: Mapping[TopicPartition, str]) -> str | None:
    """Return the first partition's text and the number of partitions; None if there is none."""
    return next((f"{told} ({len(found)} partitions)" for told in found.values()), None)


def require_none(found: Mapping[TopicPartition, str]) -> None:
    """Raise StepFailed with first_of(), if anything was found."""
    told = first_of(found)
    if told is not None:
        raise StepFailed(told)


def _advice(source: Site, follower: MapFollower, topic: str) -> str:
    if follower.unbelieved is not None:
        return f"before anything is deleted: {follower.unbelieved}"
    where, of_set = f"{source.name}-{follower.target_name} {topic}", set_option(follower.topic_set)
    target = follower.target_name
    return (
        f"`failover divergence{of_set}` lists what {target} alone has, and"
        f" `failover promote {target} --source-lost --force{of_set}` goes on with it; only to give"
        f" it up, `mirror restart {where} --from-earliest{of_set}` deletes {target}'s copy and"
        " begins anew; or exclude the topic from the flow"
    )
