"""The server.properties of one Apache Kafka broker, in either mode. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.interop.peers.kinds import Mode

HOST: Final = "127.0.0.1"
SESSION_TIMEOUT_MS: Final = 4_000
"""A broker that was killed cannot register again before its old session is over."""
COMMON: Final = {
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    "num.recovery.threads.per.data.dir": "2",
    "log.cleaner.dedupe.buffer.size": str(8 * 1024 * 1024),
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
"""Fewer threads and internal partitions than the defaults: tests share few cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One broker's id and ports; `controller_port` is used in KRaft mode only."""

    number: int
    port: int
    controller_port: int


def broker_settings(
    seat: Seat,
    *,
    mode: Mode,
    quorum: Sequence[Seat],
    zookeeper: str,
    log_folder: Path,
    overrides: Mapping[str, str],
) -> str:
    """Return the properties file; `quorum` are all brokers, each a KRaft controller as well."""
    replicas = str(min(3, len(quorum)))
    settings = {
        **COMMON,
        "log.dirs": str(log_folder),
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": "1",
    }
    if mode is Mode.ZOOKEEPER:
        settings |= _with_zookeeper(seat, zookeeper)
    else:
        settings |= _with_kraft(seat, quorum)
    settings |= overrides
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _with_zookeeper(seat: Seat, zookeeper: str) -> dict[str, str]:
    return {
        "broker.id": str(seat.number),
        "zookeeper.connect": zookeeper,
        "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        "listeners": f"PLAINTEXT://{HOST}:{seat.port}",
    }


def _with_kraft(seat: Seat, quorum: Sequence[Seat]) -> dict[str, str]:
    voters = ",".join(f"{voter.number}@{HOST}:{voter.controller_port}" for voter in quorum)
    return {
        "node.id": str(seat.number),
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": voters,
        "listeners": f"PLAINTEXT://{HOST}:{seat.port},CONTROLLER://{HOST}:{seat.controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }
