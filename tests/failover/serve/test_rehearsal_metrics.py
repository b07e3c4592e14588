"""What rehearsals found out, as metrics: what is not known is absent."""

from dataclasses import replace

from failover.rehearsal.outcome import RehearsalState
from failover.serve.rehearsal_metrics import RehearsalCollector
from runtime.configuration.rehearsal_section import HOUR_MS, RehearsalConfig
from runtime.process.clock import now_ms
from tests.failover.rehearsal.rehearsed import BEGUN, REHEARSAL


def samples(collector: RehearsalCollector) -> dict[str, float]:
    return {
        ",".join([one.name.removeprefix("failover_rehearsal_"), *one.labels.values()]): one.value
        for metric in collector.collect()
        for one in metric.samples
    }


def test_figures_are_of_the_last_that_was_judged_and_the_result_of_the_last_that_ended() -> None:
    collector = RehearsalCollector(RehearsalConfig(stale_after_ms=48 * HOUR_MS))
    assert samples(collector) == {"stale_after_seconds": 172_800}
    passed = replace(REHEARSAL, number=1, state=RehearsalState.PASSED, started_ms=1_000, legs=())
    refused = replace(BEGUN, number=4, state=RehearsalState.REFUSED)
    collector.know([passed, REHEARSAL, refused, replace(BEGUN, number=5)])
    found = samples(collector)
    assert (found["running"], found["passed_timestamp_seconds"]) == (1, 1)
    assert found["result,dc2,refused"] == 1
    assert "result,dc2,failed" not in found
    assert (found["rto_seconds,dc2,switch"], found["rto_seconds,dc2,writers"]) == (0.9, 0.7)
    assert "rto_seconds,dc2,readers" not in found
    assert (found["step_seconds,dc2,fence"], found["records,lost"]) == (0.04, 0)
    collector.know_nothing()
    assert samples(collector) == {"stale_after_seconds": 172_800}


def test_where_nothing_was_rehearsed_yet_nothing_has_passed_failed_or_been_lost() -> None:
    collector = RehearsalCollector(RehearsalConfig())
    collector.know([])
    assert samples(collector) == {"running": 0}


def test_a_rehearsal_of_a_clock_that_was_far_ahead_is_of_unknown_age() -> None:
    """Its alert compares the age, which would be below zero for a year."""
    collector = RehearsalCollector(RehearsalConfig())
    passed = replace(REHEARSAL, number=1, state=RehearsalState.PASSED, started_ms=1_000)
    ahead = replace(passed, number=2, started_ms=now_ms() + 400 * 24 * HOUR_MS)
    collector.know([ahead])
    assert "passed_timestamp_seconds" not in samples(collector)
    collector.know([passed, ahead])
    assert samples(collector)["passed_timestamp_seconds"] == 1
