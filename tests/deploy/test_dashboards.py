"""The dashboards are what their typed source says, and Prometheus can read every query in them."""

import re
import subprocess
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from deploy.grafana.source.__main__ import ALL, FOLDER, files
from deploy.grafana.source.model import ANNOTATIONS, COLUMNS, PanelKind
from tests.deploy.promtool import find_promtool

PROMTOOL: Final = find_promtool()
PROVISIONING: Final = FOLDER.parent / "provisioning"
FILLED_IN: Final = {"$__rate_interval": "1m", "$__interval": "1m"}


def queries() -> list[str]:
    """Return every query as it stands in the dashboards, those of variables and notes too."""
    panels = (query.expr for one in ALL for panel in one.panels() for query in panel.queries)
    variables = (variable.of for one in ALL for variable in one.variables)
    return [*panels, *variables, *(expr for _, expr, *_ in ANNOTATIONS)]


def test_the_files_are_what_the_source_says() -> None:
    written = {file.name: file.read_text() for file in FOLDER.glob("*.json")}
    assert written == dict(files()), "run `make docs`"


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool")
def test_prometheus_reads_every_query(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    rules = []
    for number, expr in enumerate(queries()):
        filled = expr
        for name, value in FILLED_IN.items():
            filled = filled.replace(name, value)
        rules.append({"record": f"query_{number}", "expr": filled})
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": rules}]}))
    checked = subprocess.run(
        [PROMTOOL, "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_variable_that_a_query_names_is_one_of_its_dashboard() -> None:
    for one in ALL:
        known = {variable.name for variable in one.variables}
        exprs = [query.expr for panel in one.panels() for query in panel.queries]
        named = set(re.findall(r"\$(\w+)", "".join(exprs))) - {"__rate_interval", "__interval"}
        assert named == known, one.uid


def test_no_query_names_a_job_or_an_instance() -> None:
    assert not [expr for expr in queries() if re.search(r'(job|instance)[!=]~?"(?!\$)', expr)]


def grid(dashboard: dict[str, Any]) -> list[tuple[int, int]]:
    """Return every cell that a panel takes."""
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert all(place["x"] + place["w"] <= COLUMNS for place in places)
    cells = (
        [
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
        for place in places
    )
    return list(chain.from_iterable(cells))


def test_panels_do_not_overlap_and_are_told_apart() -> None:
    for one in ALL:
        cells = grid(one.as_json())
        assert len(cells) == len(set(cells)), one.uid
        titles = [panel.title for panel in one.panels()]
        assert len(titles) == len(set(titles)), one.uid
        numbers = [panel["id"] for panel in one.as_json()["panels"]]
        assert len(numbers) == len(set(numbers))
        assert all(
            query.legend
            for panel in one.panels()
            if panel.kind is not PanelKind.TABLE
            for query in panel.queries
        )


def test_dashboards_have_names_of_their_own() -> None:
    assert len({one.uid for one in ALL}) == len({one.title for one in ALL}) == len(ALL) == 6


def test_grafana_is_told_where_the_dashboards_and_prometheus_are() -> None:
    [provider] = yaml.safe_load((PROVISIONING / "dashboards" / "kafka-dr.yaml").read_text())[
        "providers"
    ]
    assert (provider["type"], provider["options"]["path"]) == (
        "file",
        "/var/lib/grafana/dashboards/kafka-dr",
    )
    [source] = yaml.safe_load((PROVISIONING / "datasources" / "prometheus.yaml").read_text())[
        "datasources"
    ]
    assert source["type"] == "prometheus"
