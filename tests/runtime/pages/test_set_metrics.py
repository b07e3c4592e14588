"""Metrics of several sets: one family each, and the set as a label where the file has any."""

from prometheus_client import CollectorRegistry, generate_latest

from failover.serve.readiness import ReadinessCollector
from failover.serve.status_collector import StatusCollector
from runtime.pages.set_metrics import SetsCollector


def text_of(collector: SetsCollector) -> list[str]:
    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry).decode().splitlines()


def test_each_sample_has_its_set_and_each_family_stands_once() -> None:
    lost = StatusCollector()
    lost.know_nothing("the clusters know more", is_contradicted=True)
    lines = text_of(
        SetsCollector(
            {
                "default": (StatusCollector(), ReadinessCollector()),
                "payments": (lost, ReadinessCollector()),
            }
        )
    )
    assert lines.count("# TYPE failover_witness_up gauge") == 1
    assert 'failover_witness_up{set="default"} 0.0' in lines
    assert 'failover_pair_contradicted{set="payments"} 1.0' in lines


def test_without_sets_metrics_have_no_such_label() -> None:
    assert "failover_witness_up 0.0" in text_of(SetsCollector({"default": (StatusCollector(),)}))
