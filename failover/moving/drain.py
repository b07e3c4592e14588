"""Wait until everything that a fenced source holds is on the target."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

import trio

from failover.journal.execute import StepFailed
from failover.journal.journal import Journal
from failover.moving.standstill import StandstillWatch
from failover.sites.foreign_writers import find_foreign_writers
from failover.sites.map_follower import MapFollower
from failover.sites.other_log import find_other_logs, find_recreated_copies, require_none
from failover.sites.site import LogUnavailable, Site
from failover.sites.unbelieved import UnbelievedWatch
from wire.net import NetworkFault
from wire.net.side_by_side import ask_both
from wire.topic_partition import TopicPartition
from wire.values import frozen

DRAIN_POLL_S: Final = 0.05


@frozen
class SourceLogs:
    """Where the source's logs begin and end behind the fence."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


async def read_source_logs(
    source: Site, partitions: tuple[TopicPartition, ...], *, timeout_ms: int
) -> SourceLogs:
    """Return where the logs of a fenced source begin and end, once all of them is committed.

    A leader may have appended records before the fence that its replicas lack. Nobody can read them
    until the replicas have them; then their producer is told that they were taken. Raises
    StepFailed after `timeout_ms`, and NetworkFault.
    """
    waits = list(partitions)
    with trio.move_on_after(timeout_ms / 1000):
        while True:
            ends = await source.ends(partitions)
            whole = await source.whole_ends(partitions)
            waits = [
                partition for partition in partitions if whole.get(partition) != ends[partition]
            ]
            if not waits:
                return SourceLogs(starts=await source.starts(partitions), ends=ends)
            await trio.sleep(DRAIN_POLL_S)
    topic, partition = waits[0]
    raise StepFailed(
        f"{source.name} {topic}-{partition} did not commit within {timeout_ms / 1000:g} s what it"
        f" had taken before the fence ({len(waits)} of {len(partitions)} partitions)"
    )


def missing(
    logs: SourceLogs, mirrored: Mapping[TopicPartition, int | None]
) -> dict[TopicPartition, int]:
    """Return how many source offsets are not mirrored, by partition, without those that are done.

    A log that holds nothing has nothing to mirror, whatever its offsets are. Holes count as long
    as the mirror has not announced them.
    """
    found: dict[TopicPartition, int] = {}
    for partition, reached in mirrored.items():
        lacks = logs.ends[partition] - max(reached or 0, logs.starts[partition])
        if lacks > 0:
            found[partition] = lacks
    return found


async def wait_close_behind(
    source: Site,
    partitions: tuple[TopicPartition, ...],
    follower: MapFollower,
    standstills: StandstillWatch,
    *,
    max_lag: int,
    timeout_ms: int,
) -> None:
    """Return once the mirror is so close behind that a fence need not last for long.

    Each partition has to be on the target, and to reach where its source ended when the wait began,
    so that a partition that stands still is found while the source still takes writes; and no more
    than `max_lag` offsets may be left then. Raises StepFailed: for a partition that only a decision
    lets go on at once, for one that lacks nothing by map records that are not believed within
    seconds, for others after `timeout_ms`, naming the one that lacks most; and NetworkFault.
    """
    unbelieved = UnbelievedWatch(follower)
    starts = await source.starts(partitions)
    first = SourceLogs(starts=starts, ends=await source.ends(partitions))
    stuck: dict[TopicPartition, int] = {}
    left: dict[TopicPartition, int] = {}
    absent: list[TopicPartition] = []
    with trio.move_on_after(timeout_ms / 1000):
        while True:
            await standstills.require_none(partitions)
            await follower.refresh(partitions)
            absent = sorted(set(partitions) - follower.target_ends.keys())
            reached = {partition: follower.mirrored_end(partition) for partition in partitions}
            stuck = missing(first, reached)
            if not stuck and not absent:
                now = SourceLogs(starts=starts, ends=await source.ends(partitions))
                left = missing(now, reached)
                if sum(left.values()) <= max_lag:
                    return
            await unbelieved.require_none(stuck.keys())
            await trio.sleep(DRAIN_POLL_S)
    if absent and not stuck:
        raise _not_made(absent, follower.target_name, timeout_ms)
    lacking, total = stuck or left, sum((stuck or left).values())
    if not lacking:
        raise StepFailed(f"the sites did not tell within {timeout_ms / 1000:g} s how far they are")
    worst, most = max(lacking.items(), key=lambda item: item[1])
    raise StepFailed(
        f"{total} records in {len(lacking)} partitions were not mirrored within"
        f" {timeout_ms / 1000:g} s, and {source.name} would be closed for as long as that takes"
        f" (most in {worst}: {most}); `mirror status` says what holds them back"
        f"{_left_out(follower)}"
    )


async def wait_drained(
    source: Site,
    logs: SourceLogs,
    follower: MapFollower,
    standstills: StandstillWatch,
    *,
    timeout_ms: int,
) -> int:
    """Wait until nothing is missing; return how many source offsets were missing at first.

    An empty partition must be on the target too, because its producers would not find it there. A
    log that cannot tell is asked again. Raises StepFailed at once where the map speaks of another
    log than the source's or the target's, or only a decision lets a partition go on; within seconds
    where a partition lacks nothing by map records that are not believed; after `timeout_ms` it
    names the partition that lacks most. Raises NetworkFault.
    """
    unbelieved = UnbelievedWatch(follower)
    left: dict[TopicPartition, int] = {}
    absent: list[TopicPartition] = []
    first: int | None = None
    unavailable = ""
    with trio.move_on_after(timeout_ms / 1000):
        while True:
            try:
                await follower.refresh(logs.ends)
                left = missing(
                    logs, {partition: follower.mirrored_end(partition) for partition in logs.ends}
                )
                absent = sorted(logs.ends.keys() - follower.target_ends.keys())
                is_done = not left and not absent
                if first is None or is_done:
                    # First, as what the mirror has stopped at never comes; last, as it may be new.
                    await _require_same_logs(source, follower, logs, is_done=is_done)
            except LogUnavailable as fault:
                unavailable = f" ({fault})"
            else:
                first = sum(left.values()) if first is None else first
                if is_done:
                    return first
                await standstills.require_none(logs.ends)
                await unbelieved.require_none(left.keys())
            await trio.sleep(DRAIN_POLL_S)
    if first is not None and absent and not left:
        raise _not_made(absent, follower.target_name, timeout_ms)
    if first is None or not left:
        raise StepFailed(
            f"not all logs told how far they got in {timeout_ms / 1000:g} s{unavailable}"
        )
    (topic, partition), most = max(left.items(), key=lambda item: item[1])
    raise StepFailed(
        f"{sum(left.values())} records in {len(left)} partitions did not arrive within"
        f" {timeout_ms / 1000:g} s (most in {topic}-{partition}: {most}); `mirror status` shows why"
        f"{_left_out(follower)}"
    )


async def _require_same_logs(
    source: Site, follower: MapFollower, logs: SourceLogs, *, is_done: bool
) -> None:
    """Raise StepFailed where the map speaks of another log than the source's or the target's.

    Also where others have written at a target's end, by which it is told that all is done.
    """

    async def foreign() -> Mapping[TopicPartition, str] | NetworkFault:
        try:
            return await find_foreign_writers(source, follower, _holding(logs)) if is_done else {}
        except NetworkFault as fault:
            return fault  # of another log too, which the first two say better

    others, (recreated, written) = await ask_both(
        partial(find_other_logs, source, follower, logs.ends),
        partial(ask_both, partial(find_recreated_copies, follower, logs.ends), foreign),
    )
    require_none(others)
    require_none(recreated)
    if isinstance(written, NetworkFault):
        raise written
    require_none(written)


def _holding(logs: SourceLogs) -> list[TopicPartition]:
    """Return the partitions that have offsets."""
    return [partition for partition, end in logs.ends.items() if logs.starts[partition] < end]


def _left_out(follower: MapFollower) -> str:
    return "" if follower.unbelieved is None else f"; {follower.unbelieved}"


def _not_made(absent: Sequence[TopicPartition], target: str, timeout_ms: int) -> StepFailed:
    topic, partition = absent[0]
    return StepFailed(
        f"{topic}-{partition} was not made on {target} within {timeout_ms / 1000:g} s"
        f" ({len(absent)} partitions); `mirror status` shows why"
    )


async def open_transactions(source: Site, partitions: Collection[TopicPartition]) -> str:
    """Return words that name the open transaction that holds a mirror of committed records back.

    The words are empty where no transaction is open, and where the source does not tell.
    """
    try:
        ends = await source.ends(partitions)  # first: what is written meanwhile is in none
        stable = await source.stable_ends(partitions)
    except NetworkFault:
        return ""  # why the drain failed is known, only not so much of it
    held = sorted(partition for partition, end in ends.items() if stable[partition] < end)
    if not held:
        return ""
    topic, partition = held[0]
    return (
        f"; a transaction is open in {topic}-{partition} from {stable[held[0]]} on"
        f" ({len(held)} partitions)"
    )


def drained_logs(journal: Journal) -> SourceLogs:
    """Return the source's logs as the drain has left them; raises StepFailed."""
    drained = journal.drain
    if drained.starts is None or drained.ends is None:
        raise StepFailed("the journal does not say where the drained logs begin and end")
    return SourceLogs(starts=drained.starts, ends=drained.ends)
