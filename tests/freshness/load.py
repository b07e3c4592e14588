"""Groups that commit at a steady rate on the source, and a reader of the target's offsets topic.

The groups have no members: to a broker's log and to the mirror their commits are the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import process_time
from typing import Final

import trio

from tests.bench.measure.ledger import RunFailed, say
from tests.bench.measure.processes import cpu_and_memory
from tests.bench.measure.racers import Mirror
from tests.bench.measure.results import OURS
from tests.bench.measure.workloads import KIB, Workload
from tests.bench.stage.clusters import Stage
from tests.bench.stage.filling import fill
from tests.bench.stage.served import Served, create_topic, ends
from tests.freshness.figures import Arrivals, Freshness, Usage
from wire.consumer_offsets import OffsetKey, decode_key, decode_offset_value
from wire.errors import ErrorCode
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.net import Cluster, NetworkFault, open_cluster
from wire.net.metadata import TopicView
from wire.net.operations import commit_group_offsets, fetch_offsets_of
from wire.net.retries import LEADER_MOVED, code_of
from wire.record_batch import iterate_batches, iterate_records
from wire.topic_partition import TopicPartition

TOPIC: Final = "bench-fresh"
OFFSETS_TOPIC: Final = "__consumer_offsets"
PREFIX: Final = "bench-fresh-"
FILL_LIMIT_S: Final = 60
ARRIVAL_LIMIT_S: Final = 15
LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many groups commit on how many partitions each, and how often."""

    groups: int = 1_000
    partitions: int = 20
    interval_s: float = 5.0
    warm_s: float = 10.0
    measured_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What was measured."""

    freshness: Freshness
    usage: Usage
    wrong: int
    """Positions on the target that were not the committed ones when all was over."""


def measure(stage: Stage, load: Load) -> Run:
    """Mirror a small topic and let the groups commit. Raises RunFailed and what clusters raise."""
    workload = Workload(
        record_bytes=100,
        batch_bytes=16 * KIB,
        partitions=load.partitions,
        data_bytes=load.partitions * 32 * KIB,
    )
    say("fills and mirrors a small topic")
    create_topic(stage.source, TOPIC, load.partitions)
    trio.run(fill, stage.source, TOPIC, workload)
    mirror = stage.mirror(OURS, stage.next_names(), [TOPIC])
    mirror.start()
    try:
        return trio.run(_measure, stage, load, workload, mirror)
    finally:
        mirror.stop()


async def _measure(stage: Stage, load: Load, workload: Workload, mirror: Mirror) -> Run:
    async with (
        open_cluster(stage.source.addresses, client_id="bench") as source,
        open_cluster(stage.target.addresses, client_id="bench") as target,
        trio.open_nursery() as nursery,
    ):
        each = workload.records_per_batch * workload.batches_per_partition
        with trio.fail_after(FILL_LIMIT_S):
            wanted = [each] * load.partitions
            while await ends(target, TOPIC, load.partitions) != wanted:  # noqa: ASYNC110
                await trio.sleep(LOOK_S)
        say(f"{load.groups} groups commit")
        groups = Groups(load, source)
        nursery.start_soon(groups.run)
        nursery.start_soon(_watch, target, groups.arrivals)
        await trio.sleep(load.warm_s)
        say("measures")
        since_s, before = trio.current_time(), _used(stage, mirror)
        await trio.sleep(load.measured_s)
        until_s, after = trio.current_time(), _used(stage, mirror)
        groups.is_over = True
        say("waits for the last ones")
        with trio.move_on_after(ARRIVAL_LIMIT_S):
            arrivals = groups.arrivals
            while groups.under_way or arrivals.missing(since_s, until_s):  # noqa: ASYNC110
                await trio.sleep(LOOK_S)
        wrong = await groups.count_wrong(target)
        nursery.cancel_scope.cancel()
    share = {one: (after[one] - before[one]) / (until_s - since_s) for one in before}
    return Run(
        freshness=groups.arrivals.freshness(since_s, until_s),
        usage=Usage(**share),
        wrong=wrong,
    )


def _used(stage: Stage, mirror: Mirror) -> Mapping[str, float]:
    """Return the CPU-seconds spent so far, by the names that `Usage` gives them."""

    def of(served: Served) -> float:
        return sum(cpu_and_memory(pid)[0] for pid in served.pids.values())

    return {
        "mirror": cpu_and_memory(mirror.pid)[0],
        "source_brokers": of(stage.source),
        "target_brokers": of(stage.target),
        "this_program": process_time(),
    }


@dataclass(slots=True)
class Groups:
    """Commits for every group in turn; a group's n-th commit is of offset n + 1 everywhere."""

    load: Load
    source: Cluster
    is_over: bool = False
    under_way: int = 0
    arrivals: Arrivals = field(init=False)
    committed: dict[int, int] = field(default_factory=dict)
    """Each group's last commit that was acknowledged."""

    def __post_init__(self) -> None:
        """Begin with no commit."""
        self.arrivals = Arrivals(self.load.groups, self.load.partitions)

    async def run(self) -> None:
        """Commit at the rate asked for, whatever the answers take."""
        await self.source.coordinators([group_name(each) for each in range(self.load.groups)])
        began, number = trio.current_time(), 0
        async with trio.open_nursery() as nursery:
            while not self.is_over:
                await trio.sleep_until(began + number * self.load.interval_s / self.load.groups)
                nursery.start_soon(self._commit, number % self.load.groups, number)
                self.under_way += 1
                number += 1

    async def _commit(self, group: int, number: int) -> None:
        of_group = number // self.load.groups
        asked = {
            TopicPartition(TOPIC, each): (of_group + 1, "") for each in range(self.load.partitions)
        }
        answered = await commit_group_offsets(self.source, group_name(group), asked)
        refused = set(answered.values()) - {ErrorCode.NONE}
        if refused:
            raise RunFailed(f"commit of {group_name(group)}: {refused.pop().name}")
        self.arrivals.acknowledged(group, of_group, trio.current_time())
        self.committed[group] = of_group
        self.under_way -= 1

    async def count_wrong(self, target: Cluster) -> int:
        """Return how many positions on the target are not those committed last."""
        found = await fetch_offsets_of(target, [group_name(group) for group in self.committed])
        wrong = 0
        for group, number in self.committed.items():
            there = found[group_name(group)]
            for each in range(self.load.partitions):
                position = (
                    None
                    if isinstance(there, NetworkFault)
                    else there.get(TopicPartition(TOPIC, each))
                )
                wrong += position is None or position.offset != number + 1
        return wrong


def group_name(number: int) -> str:
    """Return the group's name."""
    return f"{PREFIX}{number}"


async def _watch(target: Cluster, arrivals: Arrivals) -> None:
    """Read the target's offsets topic as it grows; one broker leads all of it."""
    view = await _offsets_topic(target)
    leader = await target.leader(OFFSETS_TOPIC, 0)
    at = dict.fromkeys(view.partitions, 0)
    keys: dict[bytes, tuple[int, int] | None] = {}
    while True:
        partitions = tuple(
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=256 * KIB)
            for index, offset in at.items()
        )
        topics = (FetchTopic(topic=OFFSETS_TOPIC, topic_id=view.topic_id, partitions=partitions),)
        answer = await leader.request(
            FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=4096 * KIB, topics=topics)
        )
        for topic in answer.responses:
            for data in topic.partitions:
                if code_of(data.error_code) in LEADER_MOVED:
                    await trio.sleep(LOOK_S)  # its leader does not know of it yet
                    continue
                if data.error_code != ErrorCode.NONE:
                    raise RunFailed(f"{OFFSETS_TOPIC}-{data.partition_index}: {data.error_code}")
                assert isinstance(data.records, memoryview), "as it came off the wire"
                at[data.partition_index], shown = _positions(
                    data.records, at[data.partition_index], keys
                )
                arrivals.seen(shown, trio.current_time())


async def _offsets_topic(cluster: Cluster) -> TopicView:
    """Return the topic once it has a leader everywhere; who looks for coordinators makes it."""
    with trio.fail_after(FILL_LIMIT_S):
        while True:
            await cluster.coordinators([group_name(0)])
            topics = (await cluster.metadata([OFFSETS_TOPIC], refresh=True)).topics
            view = topics.get(OFFSETS_TOPIC)
            leaders = [] if view is None else [each.leader for each in view.partitions.values()]
            if view is not None and leaders and min(leaders) >= 0:
                return view
            await trio.sleep(LOOK_S)


def _positions(
    records: memoryview, at: int, keys: dict[bytes, tuple[int, int] | None]
) -> tuple[int, dict[tuple[int, int], int]]:
    """Return the offset behind the records, and the commit numbers in them."""
    shown: dict[tuple[int, int], int] = {}
    for header, batch in iterate_batches(records):
        at = header.next_offset
        for record in iterate_records(batch):
            key = record.key or b""
            if key not in keys:
                keys[key] = _place_of(key)
            place = keys[key]
            if place is not None and record.value is not None:
                shown[place] = decode_offset_value(record.value).offset - 1
    return at, shown


def _place_of(key: bytes) -> tuple[int, int] | None:
    decoded = decode_key(key)
    if not isinstance(decoded, OffsetKey) or not decoded.group.startswith(PREFIX):
        return None
    return int(decoded.group.removeprefix(PREFIX)), decoded.partition
