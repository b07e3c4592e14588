"""The reference pages say what the code does: they are made of it, and nothing of it is missing."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from docs.generate.__main__ import PAGES, REFERENCE
from docs.generate.map_format import RECORDS
from docs.generate.witness import TREE
from mirror.state.partition_state import ADVICE, MEANING, STOPPED, PartitionState
from offset_translation.map_records import KeyKind, decode_key
from runtime.configuration.config import MEANINGS
from runtime.configuration.schema.every_key import all_keys
from runtime.coordination.witness import WitnessPaths
from tests.docs.pages import ROOT, all_pages

METRIC = re.compile(r"\b(?:broker|mirror|failover|audit)_[a-z][a-z_0-9]*\b")
IN_CODE = re.compile(r'"((?:broker|mirror|failover|audit)_[a-z][a-z_0-9]*)"')
SUFFIXES = ("", "_total", "_bucket", "_count", "_sum")
PROGRAMS = ("broker", "mirror", "failover", "spark_audit")
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARDS = ROOT / "deploy" / "grafana" / "dashboards"
NO_METRICS = {
    "mirror_port",
    "failover_port",
    "audit_port",
    "bootstrap_port",
    "mirror_cpu_s_per_gib",
}
"""Keys of the configuration, and of the demo's verdict."""


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_what_the_code_says(name: str) -> None:
    written = (REFERENCE / name).read_text()
    assert written == PAGES[name](), f"docs/reference/{name} is not as the code is: `make docs`"


def test_every_page_is_made_again_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert {name: make() for name, make in PAGES.items()} == {
        name: make() for name, make in PAGES.items()
    }


def test_every_key_of_the_configuration_has_a_meaning_and_no_other_has() -> None:
    assert all_keys().keys() == MEANINGS.keys()


def test_every_state_has_a_meaning_and_each_that_needs_somebody_an_advice() -> None:
    assert MEANING.keys() == set(PartitionState)
    assert ADVICE.keys() == STOPPED


def test_every_kind_of_map_record_is_shown() -> None:
    shown = [int.from_bytes(key[:2], "big") for _, (key, _) in RECORDS]
    assert shown == list(KeyKind)
    for _, (key, _) in RECORDS:
        decode_key(key)


NO_PATHS = {"root", "pair_root", "topic_set", "of_pair", "of_set", "read_active"}


def test_every_path_of_the_witness_is_shown() -> None:
    paths = WitnessPaths(root="<path>")
    arguments = {
        **dict.fromkeys(("journal", "journal_parts", "rehearsal"), (0,)),
        "group": ("",),
        "vote": ("<voter>",),
    }
    made = []
    for name in dir(WitnessPaths):
        if name.startswith("_") or name in NO_PATHS:
            continue
        path = getattr(paths, name)
        if callable(path):
            path = path(*arguments.get(name, ("<source>", "<target>")))
        number = "<number>" if path.startswith(paths.rehearsals) else "<epoch>"
        made.append(re.sub(r"\d{10}$", number, path))
    shown = [path for path, _, _, _ in TREE]
    assert len(made) > 8
    assert [path for path in made if not any(one.startswith(path) for one in shown)] == []


def unexplained_metrics(text: str, page: str) -> set[str]:
    """Return the metrics that a text names and the reference page has no line for."""
    explained = set(re.findall(r"^\| `([a-z_0-9]+)`", page, re.MULTILINE))
    return {
        name
        for name in METRIC.findall(text)
        if not any(name.removesuffix(suffix) in explained for suffix in SUFFIXES)
    }


def exported_by_programs() -> Iterator[str]:
    """Yield the names of metrics that modules write out which deal with Prometheus."""
    for program in PROGRAMS:
        for module in sorted((ROOT / program).rglob("*.py")):
            source = module.read_text()
            if "prometheus_client" in source or "# HELP" in source:
                yield from IN_CODE.findall(source)


def reference() -> str:
    return (REFERENCE / "metrics.md").read_text()


def test_every_metric_of_a_program_has_a_line_in_the_reference() -> None:
    names = set(exported_by_programs())
    assert len(names) > 50
    explained = reference()
    missing = {name for name in names if not re.search(rf"`{name}(?:_total)?`", explained)}
    assert missing == set()


@pytest.mark.parametrize(
    "file", [ALERTS, *sorted(DASHBOARDS.glob("*.json"))], ids=lambda file: file.name
)
def test_every_metric_that_is_asked_for_has_a_line_in_the_reference(file: Path) -> None:
    assert unexplained_metrics(file.read_text(), reference()) == set()


def test_every_metric_that_a_page_names_has_a_line_in_the_reference() -> None:
    names = {
        page.name: unexplained_metrics(page.read_text(), reference()) - NO_METRICS
        for page in all_pages()
        if page.name not in {"CHANGELOG.md", "benchmarks.md"}
    }
    assert {page: missing for page, missing in names.items() if missing} == {}


def test_every_alert_has_a_line_in_the_reference() -> None:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    alerts = [rule["alert"] for group in groups for rule in group["rules"]]
    assert [alert for alert in alerts if f"| [`{alert}`](" not in reference()] == []


def test_a_metric_without_a_line_is_found() -> None:
    page = (
        "| `mirror_records_total` | counter |\n| `mirror_forward_duration_seconds` | histogram |\n"
    )
    asked = "rate(mirror_records_total[5m]) mirror_forward_duration_seconds_bucket mirror_new_thing"
    assert unexplained_metrics(asked, page) == {"mirror_new_thing"}
