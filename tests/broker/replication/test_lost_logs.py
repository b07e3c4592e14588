"""A log folder that is new, of a broker that is not: it leads nothing that it held before."""

from pathlib import Path
from uuid import UUID

import pytest

from broker.log.checkpoints import LOGS_BEFORE, LogBefore, LogsBefore, write_logs_before
from broker.log.config import LogConfig
from broker.replication.leadership import NO_LEADER
from broker.replication.partitions import Partitions
from tests.broker.log.logs import SMALL, opened
from tests.broker.replication.clocks import HandClock
from tests.broker.rig import TOPIC_ID, leadership
from wire.errors import ErrorCode


def replicas_on(folder: Path, config: LogConfig = SMALL) -> Partitions:
    return Partitions(0, opened(folder), lambda _: config, HandClock())


@pytest.fixture
def new_folder(tmp_path: Path) -> Path:
    """Return one that was made when the broker held the first partition of `t`."""
    write_logs_before(tmp_path / LOGS_BEFORE, LogsBefore(frozenset({LogBefore(TOPIC_ID.bytes, 0)})))
    return tmp_path


@pytest.mark.parametrize("leader", [0, NO_LEADER])
def test_what_was_lost_with_its_folder_is_not_led_at_any_later_start(
    new_folder: Path, leader: int, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        logs = opened(new_folder)
        partitions = Partitions(0, logs, lambda _: SMALL, HandClock())
        for _ in range(2):
            lost = partitions.take(leadership(0, leader=leader))
            assert lost is ErrorCode.KAFKA_STORAGE_ERROR
        assert len(caplog.records) == 1
        assert "t-0: its log was lost with its folder" in caplog.text
        caplog.clear()
        logs.close()


def test_it_follows_a_leader_that_has_the_log_and_may_lead_afterwards(new_folder: Path) -> None:
    partitions = replicas_on(new_folder)
    assert partitions.take(leadership(0, leader=1)) is ErrorCode.NONE
    assert partitions.take(leadership(0, leader=0, epoch=6)) is ErrorCode.NONE


def test_it_leads_what_is_new_what_it_never_held_and_another_topic_of_the_name(
    new_folder: Path,
) -> None:
    partitions = replicas_on(new_folder)
    assert partitions.take(leadership(1)) is ErrorCode.NONE
    assert partitions.take(leadership(0), is_new=True) is ErrorCode.NONE
    write_logs_before(
        new_folder / LOGS_BEFORE, LogsBefore(frozenset({LogBefore(UUID(int=7).bytes, 2)}))
    )
    assert partitions.take(leadership(2)) is ErrorCode.NONE


def test_a_topic_whose_assignment_could_not_be_read_is_not_led_with_nothing_either(
    tmp_path: Path,
) -> None:
    write_logs_before(tmp_path / LOGS_BEFORE, LogsBefore(topics=frozenset({"t"})))
    partitions = replicas_on(tmp_path)
    assert partitions.take(leadership(0)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert partitions.take(leadership(1), is_new=True) is ErrorCode.NONE


def test_it_leads_with_nothing_where_the_topic_allows_unclean_elections(new_folder: Path) -> None:
    unclean = LogConfig(unclean_leader_election_enable=True)
    assert replicas_on(new_folder, unclean).take(leadership(0)) is ErrorCode.NONE
