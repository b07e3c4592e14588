"""Which log folders are new, of a broker that the cluster knows."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest

from broker.config import BrokerConfig
from broker.held_before import note_held_before
from broker.log.checkpoints import (
    LOGS_BEFORE,
    LogBefore,
    MetaProperties,
    read_logs_before,
    write_meta_properties,
)
from broker.log.results import StorageError
from broker.zookeeper.store import ClusterStore
from broker.zookeeper.tree import MalformedNode, TopicAssignment
from wire.topic_partition import TopicPartition

ORDERS = UUID(int=7)


class Topics:
    """What the cluster says: broker 0 holds one partition of two; two other topics are garbled."""

    async def topic_names(self) -> list[str]:
        return ["orders", "garbled", "gone", "a b%\n"]

    async def topic(self, name: str) -> tuple[TopicAssignment, int] | None:
        if name in {"garbled", "a b%\n"}:
            raise MalformedNode(f"/brokers/topics/{name}: no JSON")
        if name == "gone":
            return None
        return TopicAssignment(topic_id=ORDERS, replicas={0: (0, 1), 1: (1, 2)}), 3


async def note(*folders: Path) -> None:
    config = cast("BrokerConfig", SimpleNamespace(log_dirs=folders, broker_id=0))
    await note_held_before(config, cast("ClusterStore", Topics()))


async def test_a_new_folder_is_told_what_the_broker_held_and_no_other_is(tmp_path: Path) -> None:
    old, file = tmp_path / "old", tmp_path / "file"
    old.mkdir()
    write_meta_properties(old / "meta.properties", MetaProperties(0, "cluster"))
    file.touch()
    await note(old, tmp_path / "new", file)
    before = read_logs_before(tmp_path / "new" / LOGS_BEFORE)
    assert before.logs == {LogBefore(ORDERS.bytes, 0)}
    assert not (old / LOGS_BEFORE).exists()
    assert file.is_file(), "the log manager says that it is no folder"


async def test_a_topic_that_cannot_be_read_counts_as_held_whatever_its_id_is_later(
    tmp_path: Path,
) -> None:
    await note(tmp_path)
    before = read_logs_before(tmp_path / LOGS_BEFORE)
    assert before.topics == {"garbled", "a b%\n"}
    assert before.may_have(TopicPartition("garbled", 4), ORDERS.bytes)
    assert not before.may_have(TopicPartition("gone", 0), UUID(int=8).bytes)


async def test_a_new_folder_that_cannot_be_told_is_not_used(tmp_path: Path) -> None:
    (tmp_path / LOGS_BEFORE).mkdir()
    with pytest.raises(StorageError, match="logs-before-checkpoint"):
        await note(tmp_path)


def test_a_damaged_note_is_no_note_of_nothing(tmp_path: Path) -> None:
    (tmp_path / LOGS_BEFORE).write_text("0\n1\nzz 0\n")
    with pytest.raises(StorageError, match="'zz' is no topic id"):
        read_logs_before(tmp_path / LOGS_BEFORE)
