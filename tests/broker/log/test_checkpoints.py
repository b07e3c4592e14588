"""The text files in Kafka's formats."""

from pathlib import Path

import pytest

from broker.log import checkpoints
from broker.log.checkpoints import MetaProperties
from broker.log.results import StorageError
from wire.topic_partition import TopicPartition


def test_offset_checkpoints_are_kafkas_text(tmp_path: Path) -> None:
    path = tmp_path / checkpoints.RECOVERY_POINTS
    offsets = {TopicPartition("b-c", 1): 7, TopicPartition("a.b_c", 0): 2**40}
    checkpoints.write_offsets(path, offsets)
    assert path.read_text() == f"0\n2\na.b_c 0 {2**40}\nb-c 1 7\n"
    assert checkpoints.read_offsets(path) == offsets
    assert checkpoints.read_offsets(tmp_path / "none") == {}


def test_partition_metadata_is_kafkas_text(tmp_path: Path) -> None:
    path = tmp_path / checkpoints.PARTITION_METADATA
    topic_id = bytes.fromhex("00112233445566778899aabbccddeeff")
    checkpoints.write_topic_id(path, topic_id)
    assert path.read_text() == "version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w"
    assert checkpoints.read_topic_id(path) == topic_id


def test_meta_properties_of_kafka_are_read(tmp_path: Path) -> None:
    path = tmp_path / checkpoints.META_PROPERTIES
    path.write_text("#\n#Thu Oct 24 10:00:00 UTC 2024\ncluster.id=AbC-_1\nversion=0\nbroker.id=3\n")
    assert checkpoints.read_meta_properties(path) == MetaProperties(3, "AbC-_1")
    checkpoints.write_meta_properties(path, MetaProperties(4, "x"))
    assert checkpoints.read_meta_properties(path) == MetaProperties(4, "x")


@pytest.mark.parametrize(
    "text", ["", "broker.id=1\ncluster.id=c\n", "version=0\nbroker.id=one\ncluster.id=c\n"]
)
def test_meta_properties_that_say_too_little_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / checkpoints.META_PROPERTIES
    path.write_text(text)
    with pytest.raises(StorageError, match=r"meta\.properties: version, broker\.id or"):
        checkpoints.read_meta_properties(path)


def test_a_folder_of_a_broker_without_zookeeper_is_refused(tmp_path: Path) -> None:
    path = tmp_path / checkpoints.META_PROPERTIES
    path.write_text("version=1\nnode.id=1\nbroker.id=1\ncluster.id=c\n")
    with pytest.raises(StorageError, match="version=1 is not of a broker with ZooKeeper"):
        checkpoints.read_meta_properties(path)


def test_a_failed_write_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    checkpoints.write_atomically(path, b"old", sync=False)
    (tmp_path / "file.tmp").mkdir()
    with pytest.raises(OSError, match="directory"):
        checkpoints.write_atomically(path, b"new", sync=False)
    assert path.read_bytes() == b"old"


def test_the_mark_of_a_clean_stop_is_kafkas_json(tmp_path: Path) -> None:
    checkpoints.write_clean_shutdown(tmp_path / checkpoints.CLEAN_SHUTDOWN)
    text = (tmp_path / ".kafka_cleanshutdown").read_text()
    assert text == '{"version":0,"brokerEpoch":-1}'
