"""A worker takes and lets go of partitions while the others go on."""

from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from mirror.flow.flow_state import FlowState
from mirror.state.batches import Cursor, Forward
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.workers.share import ShareFollower
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from runtime.configuration.config import load
from tests.mirror.building import FILE
from wire.net.errors import ConnectionClosed
from wire.topic_partition import TopicPartition

BATCH = Forward(Place(0), 1, 1, 0, 100, (b"",))


def send(partition: MirroredPartition) -> None:
    partition.in_flight.enqueue([BATCH])
    assert partition.in_flight.send_next(0) is BATCH


@dataclass
class Map:
    """The two things of the map log that a hand-over needs; fails as often as it is told."""

    did: list[str] = field(default_factory=list)
    faults: int = 0

    async def catch_up(self) -> None:
        self.did.append("catch up")

    async def settle(self) -> None:
        await trio.sleep(0.1)
        if self.faults:
            self.faults -= 1
            raise ConnectionClosed("no answer")
        self.did.append("settle")


@dataclass
class Stage:
    """A flow that takes whatever its share names."""

    flow: FlowState
    map_log: Map
    share: ShareFollower

    @classmethod
    def of(cls, folder: Path) -> "Stage":
        (folder / "dc.yaml").write_text(FILE)
        [config] = load(folder / "dc.yaml").flows
        flow = FlowState(config=config, measurements=FlowMeasurements(config.name))
        map_log = Map()

        def take() -> None:
            for place in flow.share.own - flow.partitions.own.keys():
                partition = MirroredPartition(
                    *place,
                    topic_id=UUID(int=1),
                    offset_map=OffsetMap(),
                    now_ms=0,
                    budget=flow.budget,
                )
                partition.move(PartitionState.POSITIONING, 0)
                partition.go_on(Cursor(0, Place(0), 0), 0)
                flow.partitions.take(partition)

        follower = ShareFollower(
            "f",
            share=flow.share,
            partitions=flow.partitions,
            wakeups=flow.wakeups,
            map_log=map_log,  # type: ignore[arg-type]
            take=take,
        )
        return cls(flow, map_log, follower)

    async def confirm(self, version: int, places: set[TopicPartition]) -> None:
        changed = self.share.changed
        self.share.show(version, frozenset(places))
        await changed.wait()
        assert self.share.confirmed == version


async def test_letting_go_waits_for_what_is_under_way_and_disturbs_nothing_else(
    tmp_path: Path,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    stage = Stage.of(tmp_path)
    share, flow = stage.share, stage.flow
    async with trio.open_nursery() as nursery:
        nursery.start_soon(share.run)
        await stage.confirm(1, {TopicPartition("t", 0), TopicPartition("t", 1)})
        assert stage.map_log.did == ["catch up"]
        stays, leaves = (
            flow.partitions.own[TopicPartition("t", 0)],
            flow.partitions.own[TopicPartition("t", 1)],
        )
        send(leaves)
        attempt = stays.attempt
        share.show(2, frozenset({TopicPartition("t", 0)}))
        await trio.sleep(60)
        assert share.confirmed == 1
        assert not leaves.is_flowing
        assert flow.partitions.own.keys() == {("t", 0)}
        leaves.in_flight.release(BATCH)
        stage.map_log.faults = 3
        changed = share.changed
        flow.wakeups.settled.wake()
        await changed.wait()
        assert share.confirmed == 2
        assert stage.map_log.did == ["catch up", "settle"]
        assert (stays.is_flowing, stays.attempt) == (True, attempt)
        await stage.confirm(3, {TopicPartition("t", 0), TopicPartition("t", 1)})
        assert flow.partitions.own[TopicPartition("t", 0)] is stays
        assert flow.partitions.own[TopicPartition("t", 1)] is not leaves
        nursery.cancel_scope.cancel()


async def test_of_several_versions_seen_meanwhile_the_last_counts(
    tmp_path: Path,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    stage = Stage.of(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.share.run)
        await stage.confirm(1, {TopicPartition("t", 0)})
        leaves = stage.flow.partitions.own[TopicPartition("t", 0)]
        send(leaves)
        stage.share.show(2, frozenset())
        await wait_all_tasks_blocked()
        stage.share.show(3, frozenset({TopicPartition("t", 7)}))
        stage.share.show(4, frozenset({TopicPartition("t", 8)}))
        leaves.in_flight.release(BATCH)
        stage.flow.wakeups.settled.wake()
        while stage.share.confirmed < 4:
            await stage.share.changed.wait()
        assert stage.flow.partitions.own.keys() == {("t", 8)}
        nursery.cancel_scope.cancel()
