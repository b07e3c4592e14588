"""A fence that was left on the active site is told of, and one that belongs there is not."""

from pathlib import Path

import pytest
import yaml

from failover.journal.journal import Journal
from failover.journal.steps import PromotionKind
from failover.serve.status_collector import StatusCollector
from failover.view.status import SiteStatus, Status
from runtime.coordination.witness import ActiveSite

ALERTS = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
UNFINISHED = Journal(epoch=2, site="dc1", source="dc2", kind=PromotionKind.PLANNED, started_ms=0)
SITE = (("site", "dc2"),)


def measured(*, active_fenced: tuple[str, ...], unfinished: Journal | None) -> dict[object, float]:
    """Return each sample by name and labels while dc2 is active, and dc1 fenced as it should be."""
    collector = StatusCollector()
    status = Status(
        active=ActiveSite(site="dc2", epoch=1),
        sites=tuple(
            SiteStatus(
                name=name,
                is_active=name == "dc2",
                fault=None,
                fenced_topics=topics,
                allowed_clients=(),
            )
            for name, topics in (("dc1", ("orders",)), ("dc2", active_fenced))
        ),
        flows=(),
        unfinished=unfinished,
        last=None,
    )
    collector.know(status)
    return {
        (sample.name, *sample.labels.items()): sample.value
        for metric in collector.collect()
        for sample in metric.samples
    }


def test_the_alert_goes_by_the_site_and_waits_for_no_promotion() -> None:
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    [rule] = [rule for rule in group["rules"] if rule["alert"] == "ActiveSiteFenced"]
    assert " ".join(rule["expr"].split()) == (
        "failover_fenced_topics > 0 and on (set, site) failover_role == 1"
        " unless on (set) failover_unfinished == 1"
    )
    assert rule["for"]
    assert rule["labels"] == {"severity": "critical"}


@pytest.mark.parametrize("fenced", [(), ("orders", "payments")])
@pytest.mark.parametrize("unfinished", [None, UNFINISHED])
def test_what_the_alert_asks_for_is_measured(
    fenced: tuple[str, ...], unfinished: Journal | None
) -> None:
    found = measured(active_fenced=fenced, unfinished=unfinished)
    assert found["failover_fenced_topics", *SITE] == len(fenced)
    assert found["failover_role", *SITE] == 1
    assert found["failover_role", ("site", "dc1")] == 0
    assert found["failover_unfinished",] == (unfinished is not None)
