"""The kinds of Apache Kafka that the project is held against, and their versions."""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Mode(Enum):
    """Where the cluster keeps its metadata."""

    ZOOKEEPER = "zookeeper"
    KRAFT = "kraft"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of Apache Kafka; `label` names it in tests and in the matrix."""

    label: str
    version: str
    mode: Mode

    def __str__(self) -> str:
        return f"Apache Kafka {self.version} ({self.mode.value})"


NEWEST_3: Final = "3.9.2"
NEWEST_4: Final = "4.4.0"
NEWEST_MIRROR_MAKER: Final = "4.3.1"
"""Of MirrorMaker 2: Maven Central has Kafka 4.4.0 without its connect-mirror."""

KAFKA_3_ZOOKEEPER: Final = Kind(label="kafka-3.9-zk", version=NEWEST_3, mode=Mode.ZOOKEEPER)
KAFKA_3_KRAFT: Final = Kind(label="kafka-3.9-kraft", version=NEWEST_3, mode=Mode.KRAFT)
KAFKA_4_KRAFT: Final = Kind(label="kafka-4-kraft", version=NEWEST_4, mode=Mode.KRAFT)

KINDS: Final = (KAFKA_3_ZOOKEEPER, KAFKA_3_KRAFT, KAFKA_4_KRAFT)
