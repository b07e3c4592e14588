"""Dashboard and alerts ask only for metrics that a program exports."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "kafka-disaster-recovery.json"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
PROGRAMS = ("broker", "mirror", "failover", "spark_audit")
OURS = re.compile(r"\b(?:broker|mirror|failover|audit)_[a-z_]+\b")
DERIVED = re.compile(r"_(?:total|bucket|count|sum)$")


def dashboard_expressions() -> Iterator[str]:
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]


def alert_expressions() -> Iterator[str]:
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]


@pytest.fixture(scope="module")
def exported() -> str:
    sources = [path for program in PROGRAMS for path in (ROOT / program).rglob("*.py")]
    return "\n".join(path.read_text() for path in sources)


def is_exported(metric: str, exported: str) -> bool:
    """Return whether a program names the metric, in one word or behind its prefix."""
    name = DERIVED.sub("", metric)
    prefix, _, rest = name.partition("_")
    return f'"{name}"' in exported or (f'f"{prefix}_{{' in exported and f'"{rest}"' in exported)


@pytest.mark.parametrize("expression", [*dashboard_expressions(), *alert_expressions()])
def test_every_metric_that_is_asked_for_is_exported(expression: str, exported: str) -> None:
    metrics = set(OURS.findall(re.sub(r"\{[^}]*\}|\bby \([^)]*\)", "", expression)))
    unknown = {metric for metric in metrics if not is_exported(metric, exported)}
    assert metrics or "process_" in expression
    assert not unknown


def test_panels_do_not_overlap_and_have_names() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert panel["title"]
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells
