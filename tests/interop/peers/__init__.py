"""The real ones: Apache Kafka and MirrorMaker 2 as child processes of a test or a benchmark.

    from tests.interop.peers import KAFKA_4_KRAFT, run_kafka

Jars come from Maven Central through Maven; java and disk and memory are asked for first. What is
not to be had raises PeerUnavailable, what does not run PeerFailed.
"""

from tests.interop.peers.faults import PeerFailed, PeerLost, PeerUnavailable, why_not_run
from tests.interop.peers.java_program import FULL_SPEED, QUICK_START
from tests.interop.peers.kafka import KafkaCluster, run_kafka
from tests.interop.peers.kinds import (
    KAFKA_3_KRAFT,
    KAFKA_3_ZOOKEEPER,
    KAFKA_4_KRAFT,
    KINDS,
    NEWEST_3,
    NEWEST_4,
    NEWEST_MIRROR_MAKER,
    Kind,
    Mode,
)
from tests.interop.peers.mirror_maker import (
    SAME_NAMES,
    SINGLE_COPY,
    TUNED,
    MirrorMaker,
    Site,
    run_mirror_maker,
)
from tests.interop.peers.tools import ToolFailed, run_tool

__all__ = [
    "FULL_SPEED",
    "KAFKA_3_KRAFT",
    "KAFKA_3_ZOOKEEPER",
    "KAFKA_4_KRAFT",
    "KINDS",
    "NEWEST_3",
    "NEWEST_4",
    "NEWEST_MIRROR_MAKER",
    "QUICK_START",
    "SAME_NAMES",
    "SINGLE_COPY",
    "TUNED",
    "KafkaCluster",
    "Kind",
    "MirrorMaker",
    "Mode",
    "PeerFailed",
    "PeerLost",
    "PeerUnavailable",
    "Site",
    "ToolFailed",
    "run_kafka",
    "run_mirror_maker",
    "run_tool",
    "why_not_run",
]
