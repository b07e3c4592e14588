"""Logs found at the start that the controller does not assign to this broker any more."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from broker.replication.partitions import Partitions
from tests.broker.log.logs import NOW_MS, SMALL, batch, opened
from tests.broker.replication.clocks import HandClock
from tests.broker.rig import TOPIC_ID, leadership, serving
from wire.errors import ErrorCode
from wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)

OTHER_ID = UUID(int=7)
INCREMENTAL, FULL = 1, 2


def replicas_on(folder: Path) -> Partitions:
    return Partitions(0, opened(folder), lambda _: SMALL, HandClock())


def write(folder: Path, indexes: Iterable[int]) -> None:
    """Leave logs with one record each, as a broker that was killed."""
    manager = opened(folder)
    for index in indexes:
        log = manager.create("t", index, topic_id=TOPIC_ID.bytes, config=SMALL, now_ms=NOW_MS)
        log.append(batch(), leader_epoch=5, now_ms=NOW_MS)
    manager.abandon()


def strays(folder: Path) -> list[str]:
    return sorted(path.name.partition(".")[0] for path in folder.glob("*-stray"))


def test_what_is_not_assigned_or_is_of_an_older_topic_is_set_aside(tmp_path: Path) -> None:
    write(tmp_path, range(3))
    partitions = replicas_on(tmp_path)
    partitions.set_strays_aside({("t", 0): TOPIC_ID, ("t", 1): OTHER_ID, ("t", 5): TOPIC_ID})
    assert strays(tmp_path) == ["t-1", "t-2"]
    assert partitions.take(leadership(0)) is ErrorCode.NONE
    held = partitions.led("t", 0)
    assert held is not None
    assert held.log_end_offset == 1
    assert not (tmp_path / "t-1").exists()


def test_a_set_aside_name_begins_anew_and_stays_so_over_a_crash(tmp_path: Path) -> None:
    write(tmp_path, [0])
    manager = opened(tmp_path)
    partitions = Partitions(0, manager, lambda _: SMALL, HandClock())
    partitions.set_strays_aside({("t", 0): OTHER_ID})
    fresh = manager.create("t", 0, topic_id=OTHER_ID.bytes, config=SMALL, now_ms=NOW_MS)
    assert fresh.log_end_offset == 0
    manager.abandon()
    manager = opened(tmp_path)
    assert [log.topic_id for log in manager.logs.values()] == [OTHER_ID.bytes]
    manager.close()
    assert strays(tmp_path) == ["t-0"]


def test_a_log_that_the_controller_has_spoken_of_is_never_set_aside(tmp_path: Path) -> None:
    write(tmp_path, range(2))
    partitions = replicas_on(tmp_path)
    assert partitions.take(leadership(0)) is ErrorCode.NONE
    partitions.stop("t", 0, delete=False)
    partitions.set_strays_aside({})
    assert strays(tmp_path) == ["t-1"]


async def test_only_a_full_word_for_this_life_of_the_broker_sets_aside(tmp_path: Path) -> None:
    told = LeaderAndIsrRequest(
        controller_id=0,
        controller_epoch=1,
        broker_epoch=9,
        type=INCREMENTAL,
        topic_states=(
            LeaderAndIsrTopicState(
                topic_name="t",
                topic_id=TOPIC_ID,
                partition_states=(
                    LeaderAndIsrPartitionState(
                        partition_index=0,
                        controller_epoch=1,
                        leader=0,
                        leader_epoch=5,
                        isr=(0,),
                        partition_epoch=0,
                        replicas=(0,),
                    ),
                ),
            ),
        ),
        live_leaders=(),
    )
    async with serving(tmp_path) as rig, rig.connect_broker() as controller:
        logs = rig.node.logs
        logs.create("u", 0, topic_id=OTHER_ID.bytes, config=SMALL, now_ms=NOW_MS)
        folder = logs.live_folders[0]
        await controller.ask(told)
        rig.node.registered_epoch = 10
        answer = await controller.ask(replace(told, type=FULL))
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
        assert strays(folder) == []
        rig.node.registered_epoch = 9
        await controller.ask(replace(told, type=FULL))
        assert strays(folder) == ["u-0"]
