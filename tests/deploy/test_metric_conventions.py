"""The names of all metrics follow Prometheus' conventions, as its own linter sees them."""

import re
import subprocess
from typing import Final

import pytest

from docs.generate.metrics import metrics_page
from tests.deploy.promtool import find_promtool

PROMTOOL: Final = find_promtool()
ROW: Final = re.compile(
    r"^\| `(?P<name>\w+)` \| (?P<kind>gauge|counter|histogram) \| (?P<labels>[^|]*) "
    r"\| (?P<text>.*) \|$",
    re.MULTILINE,
)


def families() -> dict[str, re.Match[str]]:
    return {row["name"]: row for row in ROW.finditer(metrics_page())}


def sample(row: re.Match[str]) -> str:
    """Return the family with one sample, as an endpoint would show it."""
    name, kind = row["name"], row["kind"]
    labels = "".join(f'{one}="x",' for one in re.findall(r"`(\w+)`", row["labels"]))
    head = f"# HELP {name} {row['text']}\n# TYPE {name} {kind}\n"
    if kind != "histogram":
        return f"{head}{name}{{{labels}}} 1\n"
    bucket = f'{name}_bucket{{{labels}le="+Inf"}} 1\n'
    return f"{head}{bucket}{name}_sum{{{labels}}} 1\n{name}_count{{{labels}}} 1\n"


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool")
def test_prometheus_linter_has_nothing_to_say_of_any_metric() -> None:
    assert PROMTOOL is not None
    page = "".join(sample(row) for row in families().values())
    linted = subprocess.run(
        [PROMTOOL, "check", "metrics"], input=page, text=True, capture_output=True, check=False
    )
    assert (linted.stdout + linted.stderr, linted.returncode) == ("", 0)


def test_units_are_base_units_and_times_of_day_say_so() -> None:
    names = families()
    assert len(names) > 100, "the page's table is read as it is written"
    for name in names:
        assert not re.search(r"_(ms|millis\w*|secs|minutes|percent|kib|mib)(_|$)", name), name
        assert name == name.lower()
    of_clock = {name for name in names if "start" in name or "last_run" in name}
    for name in of_clock - {"process_start_time_seconds"}:
        assert "timestamp" in name or "time_since" in name, name
