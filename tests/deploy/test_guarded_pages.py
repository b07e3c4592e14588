"""Prometheus itself reads pages that ask for a token over HTTPS, and nobody without it does."""

import json
import urllib.request
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import trio
import yaml
from prometheus_client import CollectorRegistry, Gauge

from runtime.pages.metrics import serve_metrics
from runtime.pages.page_door import PageDoor, PageTls
from runtime.process.child import end_child, open_child
from runtime.process.ports import free_port
from tests.deploy.promtool import find_program
from tests.doubles.certificates import Certificates

PROMETHEUS = find_program("prometheus")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed"),
]
PATIENCE_S = 60


def _job(name: str, port: int, folder: Path, token: str) -> dict[str, Any]:
    return {
        "job_name": name,
        "scheme": "https",
        "authorization": {"credentials_file": str(folder / token)},
        "tls_config": {"ca_file": str(folder / "ca.pem")},
        "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
    }


async def test_prometheus_scrapes_with_a_token_over_tls_and_is_refused_with_a_wrong_one(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    certificates = Certificates(tmp_path)
    tls = PageTls(certificate=certificates.broker, key=certificates.key(certificates.broker))
    (tmp_path / "token").write_text("t0ken\n")
    (tmp_path / "wrong").write_text("stolen\n")
    registry = CollectorRegistry()
    Gauge("shown", "What only readers see.", registry=registry).set(7)
    door = PageDoor(tls=tls, token="t0ken")  # noqa: S106
    port: int = await nursery.start(
        partial(serve_metrics, "127.0.0.1", 0, registry=registry, door=door)
    )
    jobs = [_job("right", port, tmp_path, "token"), _job("wrong", port, tmp_path, "wrong")]
    file = tmp_path / "prometheus.yml"
    file.write_text(yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}))
    own = f"127.0.0.1:{free_port()}"
    assert PROMETHEUS is not None
    data = tmp_path / "data"
    command = [PROMETHEUS, f"--config.file={file}", f"--storage.tsdb.path={data}"]
    with (tmp_path / "out").open("wb") as output:
        process = await open_child([*command, f"--web.listen-address={own}"], output=output)
    try:
        assert await _wait_for(own, "shown") == {"right": 7.0}
        assert await _wait_for(own, "up", count=2) == {"right": 1.0, "wrong": 0.0}
    finally:
        await end_child(process, patience_s=20)


async def _wait_for(own: str, query: str, count: int = 1) -> dict[str, float]:
    deadline = monotonic() + PATIENCE_S
    while True:
        found = await trio.to_thread.run_sync(_ask, own, query)
        if len(found) >= count:
            return found
        assert monotonic() < deadline, f"prometheus knows nothing of {query}"
        await trio.sleep(0.2)


def _ask(own: str, query: str) -> dict[str, float]:
    url = f"http://{own}/api/v1/query?query={query}"
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            series = json.loads(answer.read())["data"]["result"]
    except OSError:
        return {}  # it starts, or loads its data
    return {one["metric"]["job"]: float(one["value"][1]) for one in series}
