"""Data folders that Apache Kafka wrote, unpacked and opened."""

import tarfile
from pathlib import Path

from broker.log.checkpoints import META_PROPERTIES, read_meta_properties
from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from tests.broker.log.logs import NOW_MS

GOLDEN = Path(__file__).parent / "golden"
CONFIG = LogConfig().with_overrides(
    {"segment.bytes": "3000", "index.interval.bytes": "300", "segment.index.bytes": "480"}
)


def unpack(folder: Path, name: str) -> None:
    with tarfile.open(GOLDEN / f"kafka-3.9.2-{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")


def unpacked(folder: Path, name: str) -> LogManager:
    unpack(folder, name)
    return opened(folder)


def opened(folder: Path) -> LogManager:
    owner = read_meta_properties(folder / META_PROPERTIES)
    assert owner is not None
    return LogManager.open(
        [folder],
        broker_id=owner.broker_id,
        cluster_id=owner.cluster_id,
        config_of=lambda _: CONFIG,
        now_ms=NOW_MS,
    )
