"""Which ports a local cluster uses: those asked for, else those of last time, else free ones."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from runtime.process.ports import free_ports
from wire.values import frozen


@frozen
class Ports:
    """Where everything listens; `metrics` is empty when no metrics are served.

    `also` are those of each broker's second listener, where there is one.
    """

    zookeeper: int
    brokers: tuple[int, ...]
    metrics: tuple[int, ...] = ()
    also: tuple[int, ...] = ()


@frozen
class PortWishes:
    """The ports asked for: the first of a row of them, or 0 for whatever is free."""

    host: str
    brokers: int
    broker_port: int
    zookeeper_port: int
    metrics_port: int | None
    has_second_listener: bool = False


def choose_ports(wishes: PortWishes, memory: Path) -> Ports:
    """Return the ports; those in `memory` where none are asked for. Raises OSError, ValueError."""
    memory.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(memory.read_text()) if memory.exists() else {}
    free = free_ports(wishes.host)
    metrics: tuple[int, ...] = ()
    if wishes.metrics_port is not None:
        metrics = _row(wishes.metrics_port, known.get("metrics", ()), wishes.brokers, free)
    brokers = _row(wishes.broker_port, known.get("brokers", ()), wishes.brokers, free)
    also = known.get("also", ())
    return Ports(
        zookeeper=wishes.zookeeper_port or int(known.get("zookeeper", 0)) or next(free),
        brokers=brokers,
        metrics=metrics,
        also=_row(0, also, wishes.brokers, free) if wishes.has_second_listener else tuple(also),
    )


def remember_ports(ports: Ports, memory: Path) -> None:
    """Note for the next time where everything listens. Raises OSError."""
    memory.write_text(json.dumps(asdict(ports)) + "\n")


def _row(first: int, known: list[int], count: int, free: Iterator[int]) -> tuple[int, ...]:
    if first:
        return tuple(range(first, first + count))
    missing = count - len(known)
    return (*known[:count], *(next(free) for _ in range(missing)))
