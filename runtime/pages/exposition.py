"""What `/metrics` is made of: a program's registry, and lines of which there may be ten thousand.

prometheus_client takes 12 us for a line, and lets nobody else run meanwhile. Ten thousand
partitions are 100,000 lines. So those of partitions and groups are written by hand, with a turn for
all others in between, and are sent part by part.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Literal, TypeAlias

import trio
from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from runtime.process.package_version import version
from wire.values import frozen

BUILD_INFO: Final = "kafka_dr_build_info"
OPEN_METRICS: Final = "application/openmetrics-text"

Body: TypeAlias = Sequence[bytes]
"""A page in parts, each of which is sent by itself."""


@frozen
class ManyFamily:
    """A metric with a line for each partition, or for each group."""

    name: str
    """As its lines begin."""
    kind: Literal["gauge", "counter"] = "gauge"
    text: str
    labels: tuple[str, ...]

    def head(self, *, is_open: bool) -> str:
        """Return the lines above its samples; OpenMetrics names a counter without `_total`."""
        name = self.name.removesuffix("_total") if is_open else self.name
        return f"# HELP {name} {self.text}\n# TYPE {name} {self.kind}\n"


class ManyLines:
    """The lines of such metrics, gathered in parts."""

    def __init__(self, families: Iterable[ManyFamily]) -> None:
        self._families: Final = tuple(families)
        self._parts: dict[str, list[bytes]] = {one.name: [] for one in self._families}
        self._lines: dict[str, list[str]] = {one.name: [] for one in self._families}

    def add(self, name: str, labels: str, value: float) -> None:
        """Add a sample; ``labels`` are as between the braces, with escaped values."""
        self._lines[name].append(f"{name}{{{labels}}} {float(value)!r}\n")

    async def give_turn(self) -> None:
        """Let others run; what was added so far becomes a part."""
        self._close_part()
        await trio.lowlevel.checkpoint()

    def body(self, *, is_open: bool = False) -> list[bytes]:
        """Return all parts in the order of their metrics."""
        self._close_part()
        body: list[bytes] = []
        for family in self._families:
            body.append(family.head(is_open=is_open).encode())
            body += self._parts[family.name]
        return body

    def _close_part(self) -> None:
        for name, lines in self._lines.items():
            if lines:
                self._parts[name].append("".join(lines).encode())
                lines.clear()


Many: TypeAlias = Callable[[], Awaitable[ManyLines]]
"""Gathers the lines of partitions and groups, in the trio loop, which it must not block."""


async def nothing_many() -> ManyLines:
    """Return no lines."""
    return ManyLines(())


def label(text: str) -> str:
    """Return a label's value, escaped; a group's name may hold anything, a topic's may not."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


async def exposition(registry: CollectorRegistry, many: Many, accept: str) -> tuple[str, Body]:
    """Return the content type that the reader takes, and the page.

    OpenMetrics has the exemplars of histograms, the older text format has not.
    """
    encode, content_type = choose_encoder(accept)
    lines = await many()
    of_many = lines.body(is_open=content_type.startswith(OPEN_METRICS))
    return content_type, [*of_many, encode(registry)]  # what is encoded ends with OpenMetrics' EOF


class BuildCollector(Collector):
    """Which version of which program this is."""

    def __init__(self, program: str) -> None:
        self._labels = (program, version().partition(":")[0])

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return the one sample."""
        family = GaugeMetricFamily(
            BUILD_INFO, "1; its labels say what runs", labels=("program", "version")
        )
        family.add_metric(self._labels, 1)
        return [family]


def program_registry(program: str) -> CollectorRegistry:
    """Return a registry with what every program tells of itself: its process and its version."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    registry.register(BuildCollector(program))
    return registry
