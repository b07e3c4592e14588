"""The page, its charts and the figures that they are made of, written beside each other.

`python -m tests.bench.page.publish BENCH.JSON...` takes results into the published page: what a
later file has measured replaces what an earlier one has. Without a file the page is made anew.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.bench.measure.machine import ROOT
from tests.bench.measure.results import UNITS
from tests.bench.page.charts import chart
from tests.bench.page.document import CHARTS, RUN, page

PUBLISHED: Final = ROOT / "docs" / "benchmarks.md"
FIGURES: Final = "figures.json"
"""The content of the page, among its charts."""


def publish(content: Mapping[str, Any], path: Path = PUBLISHED) -> None:
    """Write the page, and its charts and figures into a folder beside it."""
    folder = path.parent / CHARTS
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(page(content))
    (folder / FIGURES).write_text(json.dumps(content, indent=1) + "\n")
    for bench in UNITS:
        rows = [row for row in content["rows"] if row["bench"] == bench]
        if rows:
            (folder / f"{bench}.svg").write_text(chart(rows))


def published(path: Path = PUBLISHED) -> dict[str, Any]:
    """Return the content of a page that was published."""
    content: dict[str, Any] = json.loads((path.parent / CHARTS / FIGURES).read_text())
    return content


def merge(contents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return several results as one; the machine is the first one's, with a note of the others."""
    rows: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    ratios: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for content in contents:
        measured = {(row["bench"], row["workload"]) for row in content["rows"]}
        # A ratio of figures that are replaced would be nobody's.
        ratios = {key: ratio for key, ratio in ratios.items() if key[:2] not in measured}
        for row in content["rows"]:
            rows[row["bench"], row["workload"], row["system"]] = row
        for ratio in content["ratios"]:
            ratios[ratio["bench"], ratio["workload"], ratio["of"], ratio["to"]] = ratio
    machine = dict(contents[0]["machine"])
    for content in contents[1:]:
        other = content["machine"]
        further = sum(key.startswith(RUN) for key in machine)
        machine[f"{RUN}{further + 2}"] = {
            "date": other["date"],
            "load at start": other["load_at_start"],
            "load at end": other["load_at_end"],
            "this project": other["versions"]["this project"],
            "processor": other["processor"],
            "workloads": "; ".join(dict.fromkeys(row["workload"] for row in content["rows"])),
        }
    return {
        **contents[0],
        "machine": machine,
        "rows": list(rows.values()),
        "ratios": list(ratios.values()),
    }


if __name__ == "__main__":
    results = [json.loads(Path(argument).read_text()) for argument in sys.argv[1:]]
    publish(merge([published(), *results]))
