"""Every panel of every dashboard, asked of a real Prometheus that has scraped the local stack.

The stack mirrors both ways, with a consumer group, a canary and the endpoint for other clients; an
audit runs and dc2 is promoted meanwhile. Each query is asked over that whole time as Grafana would
ask it, with all of each variable's values, and has to return data. What may return none says why in
the dashboard's source (`empty`).
"""

import json
import re
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import trio
import yaml

from demo.measure import create_topic
from demo.stack import FREE, PARTITIONS, TOPIC, Stack, run_stack
from deploy.grafana.source.__main__ import ALL
from deploy.grafana.source.model import ANNOTATIONS, Dashboard
from runtime.process.child import end_child, open_child
from runtime.process.clock import now_ms
from runtime.process.ports import free_port
from tests.deploy.promtool import find_program, unpack_promtool
from tests.interop.peers import PeerUnavailable

SCRAPE_S: Final = 2
STEP_S: Final = 5
RATE: Final = 200
SOME_TIME_S: Final = 25
STARTED_S: Final = 120
STORY_S: Final = 600
"""Of which most is Spark's: on a machine that is busy besides, an audit takes minutes."""
AS_CHOSEN: Final[Mapping[str, str]] = {
    "$__rate_interval": "20s",
    "$__interval": "20s",
    **{f"${one.name}": ".*" for dashboard in ALL for one in dashboard.variables},
}
"""What Grafana puts in the place of variables: of each of ours all its values."""

pytestmark = pytest.mark.matrix(subject="Dashboards", against="Prometheus")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A Prometheus that is asked about one span of time, in seconds of the clock."""

    url: str
    begin_s: float
    end_s: float

    def range(self, expr: str) -> list[Any]:
        """Return the series of a query over the whole span; fails where Prometheus refuses it."""
        words = {"query": expr, "start": self.begin_s, "end": self.end_s, "step": STEP_S}
        return list(self._get("query_range", words)["result"])

    def values(self, of: str, label: str) -> list[str]:
        """Return the values of a label, as a dashboard's variable asks for them."""
        words = {"match[]": of, "start": self.begin_s, "end": self.end_s}
        return list(self._get(f"label/{label}/values", words))

    def _get(self, what: str, words: Mapping[str, object]) -> Any:
        url = f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - our own
            return json.load(answer)["data"]


def as_asked(expr: str) -> str:
    """Return a query with all variables filled in."""
    for name in sorted(AS_CHOSEN, key=len, reverse=True):
        expr = expr.replace(name, AS_CHOSEN[name])
    assert "$" not in expr, f"a variable that no dashboard has: {expr}"
    return expr


def configure(stack: Stack) -> None:
    """Have the stack mirror both ways, with a canary and an endpoint; take free ports for pages."""
    file = stack.configuration
    config = yaml.safe_load(file.read_text())
    topics = {"topics": {"include": [f"{TOPIC}.*", "canary"]}, "groups": {"include": [".*"]}}
    config["flows"] = [
        {"source": "dc1", "target": "dc2", **topics},
        {"source": "dc2", "target": "dc1", **topics},
    ]
    config["failover"]["canary"] = {"topic": "canary"}
    config["failover"]["bootstrap"] = {"listen": f"127.0.0.1:{free_port()}"}
    for name in ("mirror_port", "failover_port", "audit_port", "bootstrap_port"):
        config["metrics"][name] = free_port()
    file.write_text(yaml.safe_dump(config))


def jobs(stack: Stack) -> dict[str, list[str]]:
    """Return what is scraped."""
    pages = yaml.safe_load(stack.configuration.read_text())["metrics"]
    brokers = {
        name: [f"127.0.0.1:{one['metrics_port']}" for one in site.ready["brokers"]]
        for name, site in stack.sites.items()
    }
    names = ("mirror", "failover", "audit", "bootstrap")
    return {name: [f"127.0.0.1:{pages[f'{name}_port']}"] for name in names} | brokers


@asynccontextmanager
async def run_prometheus(folder: Path, targets: Mapping[str, list[str]]) -> AsyncIterator[str]:
    """Scrape these, with our alerts; yields its address."""
    program = find_program("prometheus")
    if program is None:
        said = await trio.to_thread.run_sync(unpack_promtool)
        program = find_program("prometheus")
        if program is None:
            raise PeerUnavailable(f"prometheus (apt-get install prometheus): {said}")
    rules = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
    scrapes = [
        {"job_name": name, "static_configs": [{"targets": found}]}
        for name, found in targets.items()
    ]
    every = {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"}
    file = folder / "prometheus.yml"
    file.write_text(
        json.dumps({"global": every, "rule_files": [str(rules)], "scrape_configs": scrapes})
    )
    address = f"127.0.0.1:{free_port()}"
    words = (f"--config.file={file}", f"--storage.tsdb.path={folder / 'tsdb'}")
    listens = (f"--web.listen-address={address}", "--enable-feature=exemplar-storage")
    with (folder / "prometheus.log").open("wb") as log:
        process = await open_child([program, *words, *listens], output=log)
    try:
        yield f"http://{address}"
    finally:
        await end_child(process, patience_s=10)


@asynccontextmanager
async def run_observed(folder: Path) -> AsyncIterator[tuple[str, Stack]]:
    """Run the stack with traffic, scraped; yields Prometheus' address once records arrive."""
    async with run_stack(folder, FREE) as stack:
        configure(stack)
        file = str(stack.configuration)
        await trio.to_thread.run_sync(create_topic, stack.client("dc1"), TOPIC, PARTITIONS)
        files = ("--config", file)
        await stack.start_program("mirror", "mirror", "run", file)
        await stack.start_program("failover", "failover", "serve", file)
        await stack.start_program("audit-metrics", "spark-audit", "metrics", file)
        await stack.start_program("bootstrap", "failover", "bootstrap", file)
        ledger = ("--ledger", str(folder / "acknowledged.csv"))
        traffic = ("--forever", "--rate", str(RATE), *ledger)
        await stack.start_program("producer", "demo.producer", *files, *traffic)
        read = ("--deliveries", str(folder / "deliveries.csv"))
        commits = ("--commits", str(folder / "commits.csv"))
        await stack.start_program("consumer", "demo.consumer", *files, *read, *commits)
        async with run_prometheus(folder, jobs(stack)) as url:
            with trio.fail_after(STARTED_S):
                while not (folder / "deliveries.csv").exists():  # noqa: ASYNC110 - a file
                    await trio.sleep(0.2)
            yield url, stack


async def story(folder: Path) -> tuple[dict[str, list[str]], list[str]]:
    """Play it; return the panels' queries without data, and what was wrong besides."""
    begin_s = now_ms() / 1000
    async with run_observed(folder) as (url, stack):
        file = str(stack.configuration)
        await trio.sleep(SOME_TIME_S)
        audited = await stack.run_program("audit", "spark-audit", "run", file)
        promoted = await stack.run_program("promote", "failover", "promote", "dc2", file)
        assert promoted == 0, stack.last_words("promote")
        assert audited in {0, 1}, stack.last_words("audit")
        await trio.sleep(SOME_TIME_S)
        asked = Asked(url=url, begin_s=begin_s, end_s=now_ms() / 1000)
        return await trio.to_thread.run_sync(look, asked)


def look(asked: Asked) -> tuple[dict[str, list[str]], list[str]]:
    """Ask for all of it."""
    silent: dict[str, list[str]] = {}
    for dashboard in ALL:
        for panel in dashboard.panels():
            without = [
                query.expr for query in panel.queries if not asked.range(as_asked(query.expr))
            ]
            if without:
                silent[f"{dashboard.uid}: {panel.title}"] = without
    return silent, [*_variables(asked), *_annotations(asked)]


def _variables(asked: Asked) -> list[str]:
    return [
        f"{dashboard.uid}: no value of ${one.name}"
        for dashboard in ALL
        for one in dashboard.variables
        if one.name != "set" and not asked.values(as_asked(one.of), one.name)
    ]


def _annotations(asked: Asked) -> list[str]:
    wrong = []
    for name, expr, value_is, *_ in ANNOTATIONS:
        found = [float(value) for one in asked.range(as_asked(expr)) for _, value in one["values"]]
        if not found:
            wrong.append(f"annotation {name}: no data")
        elif value_is == "time" and not asked.begin_s < found[-1] / 1000 < asked.end_s:
            wrong.append(f"annotation {name}: {found[-1]} is not when it happened, in ms")
    return wrong


def may_be_empty(dashboards: tuple[Dashboard, ...]) -> set[str]:
    return {
        f"{dashboard.uid}: {panel.title}"
        for dashboard in dashboards
        for panel in dashboard.panels()
        if panel.empty
    }


async def test_every_panel_has_data_of_a_stack_that_was_audited_and_promoted(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "stack"
    folder.mkdir()
    with trio.fail_after(STORY_S):
        silent, wrong = await story(folder)
    assert wrong == []
    assert {name: asked for name, asked in silent.items() if name not in may_be_empty(ALL)} == {}


def test_what_may_be_empty_says_why() -> None:
    assert len(may_be_empty(ALL)) < 15, "most panels have data in any stack at work"
    reasons = [panel.empty for one in ALL for panel in one.panels() if panel.empty]
    assert all(re.match(r"[a-z].{10,}[^.]$", reason) for reason in reasons)
