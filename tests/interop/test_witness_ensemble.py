"""The page about the witness, as it stands: three real servers with its files, and one dies."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import trio
import yaml

from runtime.configuration.config import load
from runtime.configuration.witness_session import open_witness
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperUnreachable, open_zookeeper
from runtime.pair.witness_rights import find_unexpected_rights
from runtime.process.child import end_child, open_child
from runtime.process.ports import free_port
from runtime.process.zookeeper_server import server_command
from tests.dc_yaml import dc_yaml
from tests.doubles.certificates import Certificates

pytestmark = pytest.mark.matrix(
    subject="The witness, as its page sets it up", against="ZooKeeper, three servers"
)
PAGE: Final = Path(__file__).parents[2] / "docs" / "operate" / "witness.md"
HOSTS: Final = ("zk1.dc1.example", "zk2.dc2.example", "zk3.elsewhere.example")
UP_S: Final = 60


def blocks(kind: str) -> Iterator[str]:
    yield from re.findall(rf"```{kind}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def written_for(text: str, folder: Path, ports: dict[str, tuple[int, int, int]]) -> str:
    """Return a file of the page with this machine's addresses and folders in place of its own."""
    for host, (client, quorum, election) in ports.items():
        text = text.replace(f"{host}:2888:3888", f"127.0.0.1:{quorum}:{election}")
        text = text.replace(f"{host}:2281", f"127.0.0.1:{client}")
    for named in ("/etc/zookeeper", "/var/lib/zookeeper", "/etc/kafka-dr"):
        text = text.replace(named, str(folder))
    return text


@asynccontextmanager
async def server(
    folder: Path, number: int, text: str, certificates: Certificates
) -> AsyncIterator[trio.Process]:
    folder.mkdir()
    (folder / "myid").write_text(f"{number}\n")
    keys = (certificates.broker, certificates.key(certificates.broker))
    (folder / "server.pem").write_bytes(b"".join(part.read_bytes() for part in keys))
    (folder / "ca.pem").write_bytes(certificates.ca.read_bytes())
    (folder / "zoo.cfg").write_text(text)
    with (folder / "out").open("wb") as output:
        process = await open_child(server_command(folder / "zoo.cfg"), output=output)
        try:
            yield process
        finally:
            await end_child(process, patience_s=10)


async def test_an_ensemble_with_the_files_of_the_page_outlives_one_of_its_servers(
    tmp_path: Path,
) -> None:
    certificates = Certificates(tmp_path)
    (configured,) = blocks("ini")
    (coordination,) = blocks("yaml")
    ports = {host: (free_port(), free_port(), free_port()) for host in HOSTS}
    (tmp_path / "witness.secret").write_text("made up")
    async with AsyncExitStack() as stack:
        processes = []
        for number, (client, _, _) in enumerate(ports.values(), 1):
            folder = tmp_path / f"zk{number}"
            text = written_for(configured, folder, ports).replace(
                "secureClientPort=2281", f"secureClientPort={client}"
            )
            running = server(folder, number, text, certificates)
            processes.append(await stack.enter_async_context(running))
        file = tmp_path / "dc.yaml"
        section = yaml.safe_load(written_for(coordination, tmp_path, ports))["coordination"]
        file.write_text(dc_yaml(coordination=section, path=section["path"]))
        configuration = load(file).coordination
        async with open_witness(configuration, start_timeout_ms=UP_S * 1_000) as zookeeper:
            await zookeeper.create("/kafka-dr/active", b"dc1", make_parents=True)
            await end_child(processes[0], patience_s=10)
            await _set(zookeeper, "/kafka-dr/active", b"dc2")
            foreign = find_unexpected_rights(zookeeper, configuration.access, "/kafka-dr")
            assert [one async for one in foreign] == []
        with pytest.raises(ZooKeeperUnreachable):
            async with open_zookeeper(
                configuration.zookeeper, session_timeout_ms=4_000, start_timeout_ms=3_000
            ):
                pass


async def _set(zookeeper: ZooKeeper, path: str, data: bytes) -> None:
    """Write once the session has moved to a server that is left."""
    with trio.fail_after(UP_S):
        while True:
            try:
                await zookeeper.set(path, data)
            except ZooKeeperUnreachable:
                await zookeeper.wait_connected()
            else:
                return
