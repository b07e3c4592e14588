"""Whether a site could be promoted, as metrics: what nobody could look at is absent."""

from pathlib import Path

from failover.planning.readiness import Readiness
from failover.planning.refusal import Cause
from failover.serve.readiness import GAUGE, ReadinessCollector
from failover.view.readiness import promotable
from runtime.configuration.config import load
from tests.dc_yaml import dc_yaml


def samples(collector: ReadinessCollector) -> dict[tuple[str, str], float]:
    return {
        (sample.labels["site"], sample.labels["reason"]): sample.value
        for metric in collector.collect()
        for sample in metric.samples
        if sample.name == GAUGE
    }


def test_a_site_is_shown_with_what_is_in_the_way_until_nobody_can_look() -> None:
    collector = ReadinessCollector()
    assert samples(collector) == {}
    collector.know([Readiness(site="dc2"), Readiness(site="dc3", cause=Cause.BEHIND)], 5_000)
    assert samples(collector) == {("dc2", ""): 1, ("dc3", "behind"): 0}
    collector.know_nothing()
    assert samples(collector) == {}
    looked = [one for metric in collector.collect() for one in metric.samples]
    assert [one.value for one in looked] == [5.0], "how old the last look is stays known"


def test_only_sites_are_asked_for_that_a_promotion_could_move_to(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml())
    configuration = load(file)
    assert promotable(configuration) == sorted({flow.target for flow in configuration.flows})
