"""Whether each idle site could be promoted now, asked for again and again, as metrics.

What could not be looked at is no answer: the gauges of a site disappear until it is.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import trio
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from failover.journal.journal import JournalUnreadable
from failover.planning.readiness import Readiness
from failover.view.readiness import look_at_readiness
from runtime.configuration.config import Configuration
from runtime.configuration.witness_session import open_witness
from runtime.coordination.witness import WitnessGarbled
from runtime.coordination.zookeeper import ZooKeeperFault
from runtime.pair.opening import PairContradicted, PairUnknown
from runtime.process.clock import wall_ms
from runtime.process.fault_note import FaultNote
from runtime.process.unforeseen import described, keep_at_work

GAUGE: Final = "failover_ready"
READ_EVERY_S: Final = 10.0
"""So often it is looked while somebody reads the console, if not more often anyway."""


class ReadinessCollector(Collector):
    """What was found last of each idle site."""

    def __init__(self) -> None:
        self._found: Sequence[Readiness] = ()
        self._looked_ms: int | None = None
        self.why_not = ""
        """Why nothing is known."""
        self._reader = trio.Event()

    def know(self, found: Sequence[Readiness], looked_ms: int) -> None:
        """Show this."""
        self._found, self._looked_ms, self.why_not = found, looked_ms, ""

    def know_nothing(self, why: str = "") -> None:
        """Show no site: nobody could look, and why."""
        self._found, self.why_not = (), why

    def seen(self) -> tuple[Sequence[Readiness], int | None]:
        """Return what was found last, and when; somebody reads it, so the next look comes soon."""
        self._reader.set()
        return self._found, self._looked_ms

    async def wait_due(self, interval_s: float) -> None:
        """Wait until the next look: not so long where somebody reads."""
        self._reader = trio.Event()
        soon_s = min(READ_EVERY_S, interval_s)
        await trio.sleep(soon_s)
        with trio.move_on_after(interval_s - soon_s):
            await self._reader.wait()

    def collect(self) -> Iterator[Metric]:
        """Yield what is known now."""
        ready = GaugeMetricFamily(
            GAUGE,
            "1 while a planned promotion of the site could begin and close the active one at once;"
            " 0 with what is in the way as the reason",
            labels=["site", "reason"],
        )
        for one in self._found:
            ready.add_metric([one.site, one.cause or ""], int(one.is_ready))
        yield ready
        looked = GaugeMetricFamily(
            "failover_ready_checked_timestamp_seconds", "Unix time of the last look at all of it"
        )
        if self._looked_ms is not None:
            looked.add_metric([], self._looked_ms / 1_000)
        yield looked


async def follow_readiness(configuration: Configuration, collector: ReadinessCollector) -> None:
    """Look again and again until cancelled, in a new session each time."""
    trouble = FaultNote("readiness")
    await keep_at_work(partial(_follow, configuration, collector, trouble), trouble, "the look")


async def _follow(
    configuration: Configuration, collector: ReadinessCollector, trouble: FaultNote
) -> None:
    while True:
        try:
            async with open_witness(configuration.coordination) as zookeeper:
                found = await look_at_readiness(configuration, zookeeper)
        except (
            ZooKeeperFault,
            WitnessGarbled,
            JournalUnreadable,
            PairUnknown,
            PairContradicted,
        ) as fault:
            collector.know_nothing(str(fault))
            trouble.note(f"not known: {fault}")
        except Exception as unforeseen:
            collector.know_nothing(described(unforeseen))
            raise
        else:
            trouble.clear()
            trouble.clear("the look")
            collector.know(found, wall_ms())
            for one in found:
                if one.reason is None:
                    trouble.clear(one.site)
                else:
                    trouble.note(f"{one.site} could not be promoted now: {one.reason}", one.site)
        await collector.wait_due(configuration.failover.readiness_interval_ms / 1_000)
