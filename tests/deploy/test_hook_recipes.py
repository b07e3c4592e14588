"""The recipes of `deploy/hooks` that need no server of their own, and the page that names them."""

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import h11
import pytest
import trio

from failover.hooks.call import HookFailed, call_hook
from runtime.configuration.hooks_section import HookConfig
from tests.failover.hooks.occasions import OCCASION

ROOT: Final = Path(__file__).parents[2]
RECIPES: Final = ROOT / "deploy" / "hooks"
SERVICE: Final = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "kafka", "namespace": "prod"},
    "spec": {"type": "ExternalName", "externalName": "k.dc1.example.com"},
}


def recipe(file: str, *arguments: str) -> HookConfig:
    command = (str(RECIPES / file), *arguments)
    return HookConfig(name="it", step="switch", is_before=False, command=command)


def test_the_page_names_every_recipe() -> None:
    page = (ROOT / "docs" / "operate" / "hooks.md").read_text()
    assert {one.name for one in RECIPES.iterdir()} == {
        name for name in page.replace("`", " ").split() if name.endswith(".sh") and "/" not in name
    }


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
async def test_a_service_points_at_the_active_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real kubectl, which patches a file in place of what a server has."""
    file = tmp_path / "service.json"
    file.write_text(json.dumps(SERVICE))
    local = tmp_path / "kubectl"
    local.write_text(
        "#!/bin/sh\n# patch service NAME --namespace N --type merge --patch P\n"
        f'kubectl patch --local -f {file} --type merge --patch "$9" -o json > {file}.new'
        f" && mv {file}.new {file}\n"
    )
    local.chmod(0o755)
    monkeypatch.setenv("KUBECTL", str(local))
    hook = recipe(
        "kubernetes-service.sh", "prod", "kafka", "dc1=k.dc1.example.com", "dc2=k.dc2.example.com"
    )
    await call_hook(hook, OCCASION)
    patched = json.loads(file.read_text())
    assert patched["spec"] == {"type": "ExternalName", "externalName": "k.dc2.example.com"}
    assert patched["metadata"]["annotations"] == {"kafka-dr/epoch": "3"}
    with pytest.raises(HookFailed, match="no host is given for the site dc3"):
        await call_hook(hook, replace(OCCASION, active="dc3"))


@asynccontextmanager
async def key_value_store(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that answers as Consul's does; yield its port and what it was sent."""
    sent: list[bytes] = []

    async def serve(stream: trio.SocketStream) -> None:
        http = h11.Connection(h11.SERVER)
        while not isinstance(event := http.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                http.receive_data(bytes(await stream.receive_some()))
            elif isinstance(event, h11.Request):
                sent.append(event.method + b" " + event.target)
            elif isinstance(event, h11.Data):
                sent.append(bytes(event.data))
        head = h11.Response(status_code=200, headers=[("Content-Length", f"{len(answer)}")])
        parts = [http.send(one) for one in (head, h11.Data(data=answer), h11.EndOfMessage())]
        await stream.send_all(b"".join(part for part in parts if part))
        await stream.aclose()

    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield listener.socket.getsockname()[1], sent
        nursery.cancel_scope.cancel()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
async def test_consul_is_told_and_its_no_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    async with key_value_store(b"true") as (port, sent):
        monkeypatch.setenv("CONSUL_HTTP_ADDR", f"http://127.0.0.1:{port}")
        await call_hook(recipe("consul.sh", "apps/kafka"), OCCASION)
    assert sent[0] == b"PUT /v1/kv/apps/kafka"
    assert json.loads(b"".join(sent[1:])) == {
        "site": "dc2",
        "epoch": 3,
        "bootstrap": OCCASION.bootstrap,
    }
    failed = ""
    async with key_value_store(b"false") as (port, _):
        monkeypatch.setenv("CONSUL_HTTP_ADDR", f"http://127.0.0.1:{port}")
        try:
            await call_hook(recipe("consul.sh"), OCCASION)
        except HookFailed as problem:
            failed = str(problem)
    assert failed.endswith("Consul answered false")
