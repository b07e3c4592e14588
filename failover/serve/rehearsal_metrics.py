"""What the last rehearsal found out, as metrics; what is not known is absent."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from failover.rehearsal.outcome import Rehearsal, RehearsalState
from runtime.configuration.rehearsal_section import RehearsalConfig
from runtime.process.clock import now_ms

PHASES: Final = ("switch", "closed", "writers", "readers")
"""Whose times are shown: from the command to the switch, how long nobody could write, and for how
long nothing was written and read."""
AHEAD_MS: Final = 3_600_000
"""A time that lies further ahead is of a clock that was wrong, and is not known."""


class RehearsalCollector(Collector):
    """The rehearsals that the witness keeps, as they were read last."""

    def __init__(self, config: RehearsalConfig) -> None:
        self._config = config
        self._kept: Sequence[Rehearsal] | None = None

    def know(self, kept: Sequence[Rehearsal]) -> None:
        """Show these, oldest first."""
        self._kept = kept

    def know_nothing(self) -> None:
        """Show nothing: the witness could not be read."""
        self._kept = None

    def collect(self) -> Iterator[Metric]:
        """Yield what is known now."""
        stale = GaugeMetricFamily(
            "failover_rehearsal_stale_after_seconds",
            "The age at which the last rehearsal that has passed is too old; absent where none is",
        )
        if self._config.stale_after_ms is not None:
            stale.add_metric([], self._config.stale_after_ms / 1_000)
        yield stale
        kept = self._kept
        running = GaugeMetricFamily(
            "failover_rehearsal_running", "1 while a rehearsal has begun and not ended"
        )
        if kept is not None:
            running.add_metric([], int(any(_runs(one) for one in kept)))
        yield running
        ended = [one for one in kept or () if not _runs(one)]
        yield _passed(ended, now_ms())
        yield _result(ended)
        judged = [one for one in ended if one.legs or one.load is not None]
        yield from _last(judged[-1] if judged else None)


def _runs(rehearsal: Rehearsal) -> bool:
    return rehearsal.state is RehearsalState.RUNNING


def _passed(ended: Sequence[Rehearsal], now_ms: int) -> Metric:
    family = GaugeMetricFamily(
        "failover_rehearsal_passed_timestamp_seconds",
        "Unix time at which the last rehearsal that has passed began",
    )
    passed = [
        one.started_ms
        for one in ended
        if one.state is RehearsalState.PASSED and one.started_ms - now_ms <= AHEAD_MS
    ]
    if passed:
        family.add_metric([], passed[-1] / 1_000)
    return family


def _result(ended: Sequence[Rehearsal]) -> Metric:
    family = GaugeMetricFamily(
        "failover_rehearsal_result",
        "1 for how the last rehearsal ended: passed, failed, refused or interrupted",
        labels=["site", "result"],
    )
    if ended:
        family.add_metric([ended[-1].site, ended[-1].state.value], 1)
    return family


def _last(judged: Rehearsal | None) -> Iterator[Metric]:
    """Yield the figures of the last rehearsal that came so far."""
    rto = GaugeMetricFamily(
        "failover_rehearsal_rto_seconds",
        "Of the last rehearsed promotion of a site: from the command to the switch, how long the"
        " fence was closed before that, and for how long nothing was written and read",
        labels=["site", "phase"],
    )
    steps = GaugeMetricFamily(
        "failover_rehearsal_step_seconds",
        "How long a step of the last rehearsed promotion of a site took",
        labels=["site", "step"],
    )
    records = GaugeMetricFamily(
        "failover_rehearsal_records",
        "Records of the last rehearsal by what became of them; all but `acknowledged` should be 0",
        labels=["fate"],
    )
    if judged is not None:
        for leg in judged.legs:
            times = (leg.rto_ms, leg.closed_ms, leg.writers_ms, leg.readers_ms)
            for phase, took_ms in zip(PHASES, times, strict=True):
                if took_ms is not None:
                    rto.add_metric([leg.site, phase], took_ms / 1_000)
            for step, took_ms in leg.steps.items():
                steps.add_metric([leg.site, step], took_ms / 1_000)
        if judged.load is not None:
            for fate, count in asdict(judged.load).items():
                records.add_metric([fate], count)
    yield from (rto, steps, records)
