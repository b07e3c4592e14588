"""An endpoint that runs in the test, for clients of two sites."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from urllib.request import urlopen

import trio
import yaml
from confluent_kafka import Consumer

from failover.bootstrap.endpoint import serve_bootstrap
from runtime.configuration.config import load
from runtime.process.ports import free_port, free_ports
from tests.failover.two_sites import Sites, pause
from tests.forked import start_program

BROKERS = 5
HEARD_S = 30
STOPPED_S = 60


def ports_in_a_row(count: int) -> tuple[int, int]:
    """Return the first and the last of so many ports on which nobody listens."""
    while True:
        first = free_port()
        behind = range(first + 1, first + count)
        if all(any(free_ports("127.0.0.1", range(port, port + 1))) for port in behind):
            return first, first + count - 1


@dataclass(frozen=True, slots=True)
class Served:
    """An endpoint and its page of metrics."""

    address: str
    metrics_port: int

    async def wait_shown(self, site: str) -> None:
        """Return once clients are shown this site."""
        await trio.to_thread.run_sync(self._wait_shown, site)

    def _wait_shown(self, site: str) -> None:
        wanted = f'failover_bootstrap_site{{site="{site}"}} 1.0'
        deadline = monotonic() + HEARD_S
        while wanted not in self._metrics():
            assert monotonic() < deadline, f"clients are not shown {site}"
            pause(0.02)

    def _metrics(self) -> str:
        with urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=20) as page:
            return str(page.read(), "utf-8")


@asynccontextmanager
async def endpoint(
    sites: Sites, folder: Path, path: str, *, forwards: bool = False
) -> AsyncIterator[Served]:
    """Serve clients of these sites. With `forwards` brokers 0 to 4 have ports."""
    file = sites.configure(folder, path)
    port = free_port()
    section = f"listen: '127.0.0.1:{port}'"
    if forwards:
        first, last = ports_in_a_row(BROKERS)
        section += f", forward: {{host: 127.0.0.1, ports: {first}-{last}}}"
    text = file.read_text()
    assert text.count("failover: {") == 1
    file.write_text(text.replace("failover: {", f"failover: {{bootstrap: {{{section}}}, "))
    async with trio.open_nursery() as nursery:
        _, metrics_port = await nursery.start(serve_bootstrap, load(file))
        yield Served(f"127.0.0.1:{port}", metrics_port)
        nursery.cancel_scope.cancel()


def _by_ports() -> Mapping[str, object]:
    first, last = ports_in_a_row(BROKERS)
    return {"forward": {"host": "127.0.0.1", "ports": f"{first}-{last}"}}


def read(consumer: Consumer, count: int) -> list[int]:
    """Return the numbers of so many records, as long as they come."""
    found: list[int] = []
    while len(found) < count:
        message = consumer.poll(30)
        assert message is not None, f"only {found}"
        if message.error() is None:
            found.append(int(message.value() or b"-1"))
    return found


@contextmanager
def run_forwarding(
    file: Path, folder: Path, by_names: Mapping[str, object] | None = None
) -> Iterator[tuple[str, int]]:
    """Run `failover bootstrap` by a copy of this file that forwards; its address and process.

    `by_names` has `forward` and `tls` where each broker has a name instead of a port.
    """
    address = f"127.0.0.1:{free_port()}"
    document = yaml.safe_load(file.read_text())
    document["failover"]["bootstrap"] = {"listen": address, **(by_names or _by_ports())}
    own = folder / "endpoint.yaml"
    own.write_text(yaml.safe_dump(document))
    with (folder / "bootstrap.log").open("ab") as log:
        program = start_program("failover.cli", "bootstrap", str(own), output=log)
    try:
        yield address, program.pid
    finally:
        program.terminate()
        program.wait(STOPPED_S)
