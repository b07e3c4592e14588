"""Whose report is believed to be a worker's."""

import json
import socket
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio

from mirror.commands.status import NobodyAnswers, _ask
from mirror.daemon import reached_at
from runtime.coordination.witness import WorkerInfo
from runtime.pages.metrics import serve_metrics
from runtime.pages.page_door import UNGUARDED, PageDoor, PageTls
from tests.doubles.certificates import Certificates
from tests.mirror.building import CONFIG


@pytest.mark.parametrize("is_asked", [True, False], ids=["itself", "another one"])
async def test_a_worker_of_another_machine_is_not_taken_for_the_one_that_answers(
    nursery: trio.Nursery, *, is_asked: bool
) -> None:
    """The same file on two machines gives both workers the same address."""

    async def status() -> tuple[str, bytes]:
        flows = [{"flow": CONFIG.name}]
        found = {"pid": 1, "started_ms": 5 if is_asked else 6, "flows": flows}
        return "application/json", json.dumps(found).encode()

    serve = partial(serve_metrics, ready=lambda: True, routes={"/status": status})
    port = await nursery.start(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{port}/metrics"
    worker = WorkerInfo(host="far", pid=1, metrics_url=url, started_ms=5)
    if is_asked:
        assert (await _ask(worker, CONFIG, UNGUARDED))["flow"] == CONFIG.name
        return
    with pytest.raises(NobodyAnswers, match=r"process 1 on far should run .* metrics\.host"):
        await _ask(worker, CONFIG, UNGUARDED)


@pytest.mark.parametrize("said", [[], 5, None, {"pid": 1, "started_ms": 5, "flows": None}])
async def test_another_program_where_a_worker_was_is_no_worker(
    nursery: trio.Nursery, said: object
) -> None:
    async def status() -> tuple[str, bytes]:
        return "application/json", json.dumps(said).encode()

    routes = {"/status": status}
    serve = partial(serve_metrics, ready=lambda: True, routes=routes)
    port = await nursery.start(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{port}/metrics"
    with pytest.raises(NobodyAnswers, match="process 1 on far should run this flow, but"):
        await _ask(WorkerInfo(host="far", pid=1, metrics_url=url, started_ms=5), CONFIG, UNGUARDED)


async def test_a_worker_that_hangs_or_is_away_is_named_with_its_page_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runtime.pages.page_reader.ASK_TIMEOUT_S", 0.05)
    start = r"process 1 on far should run this flow, but http://127\.0\.0\.1:\d+/metrics "
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        port = hanging.getsockname()[1]
        url = f"http://127.0.0.1:{port}/metrics"
        worker = WorkerInfo(host="far", pid=1, metrics_url=url, started_ms=5)
        with pytest.raises(NobodyAnswers, match=f"{start}says nothing within .* end it"):
            await _ask(worker, CONFIG, UNGUARDED)
    with pytest.raises(NobodyAnswers, match=f"{start}cannot be asked: Connection refused$"):
        await _ask(worker, CONFIG, UNGUARDED)


async def test_guarded_pages_are_read_with_what_the_file_has(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    async def status() -> tuple[str, bytes]:
        found = {"pid": 1, "started_ms": 5, "flows": [{"flow": CONFIG.name}]}
        return "application/json", json.dumps(found).encode()

    made = Certificates(tmp_path)
    tls = PageTls(certificate=made.broker, key=made.key(made.broker), ca=made.ca)
    door = PageDoor(tls=tls, token="t0ken")  # noqa: S106
    port = await nursery.start(
        partial(serve_metrics, "127.0.0.1", 0, routes={"/status": status}, door=door)
    )
    url = f"https://127.0.0.1:{port}/metrics"
    worker = WorkerInfo(host="far", pid=1, metrics_url=url, started_ms=5)
    assert (await _ask(worker, CONFIG, door))["flow"] == CONFIG.name
    with pytest.raises(NobodyAnswers, match="certificate verify failed"):
        await _ask(worker, CONFIG, replace(door, tls=replace(tls, ca=made.strange_ca)))
    with pytest.raises(NobodyAnswers, match=r"refuses what `metrics` of .*\(the token of this"):
        await _ask(worker, CONFIG, replace(door, token="another"))  # noqa: S106


def test_a_worker_that_listens_everywhere_tells_where_it_is_reached() -> None:
    assert reached_at("10.1.2.3", "127.0.0.1:2181") == "10.1.2.3"
    assert reached_at("0.0.0.0", "127.0.0.1:2181") == "127.0.0.1"  # noqa: S104
    assert reached_at("::", "no-such-host.invalid:1,127.0.0.1:2181") == "127.0.0.1"
    assert reached_at("::", "no-such-host.invalid:1,[::1]:2181") == "[::1]"
    assert reached_at("fd00::1", "127.0.0.1:2181") == "[fd00::1]"
    assert reached_at("::", "no-such-host.invalid:1") == socket.gethostname()
