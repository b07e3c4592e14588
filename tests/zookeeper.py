"""A ZooKeeper of its own process, so that tests need no event loop for it.

Most tests want one to write into, not to start and stop it: they share that of `tests/conftest.py`.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, Final

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from runtime.coordination.kazoo_client import kazoo_acl
from runtime.coordination.zookeeper import Create, NotAllowed, ZooKeeper, open_zookeeper
from runtime.coordination.zookeeper_access import Login, LoginMechanism, ZooKeeperAccess
from runtime.process.ports import free_port
from tests.forked import Process, start_program

SERVES: Final = "ZooKeeper serves"
"""What the program says once its server answers."""
USER: Final = "tests"
PASSWORD: Final = "of the tests"  # noqa: S105
"""All tests log in at the witness: a program that does not is refused by what others made."""
ACCESS: Final = ZooKeeperAccess(
    login=Login(mechanism=LoginMechanism.DIGEST, username=USER, password=PASSWORD)
)
OTHER_LOGINS: Final = ("dr:right", "dr:new", "dr:old")
"""Those of tests about logins: what they have made is deleted as well."""
UNDELETABLE: Final = ("/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config")
KEPT: Final = "zookeeper"
"""What the server itself keeps below its root."""


def open_witness_of_tests(
    address: str, session_timeout_ms: int = 4_000
) -> AbstractAsyncContextManager[ZooKeeper]:
    """Open a session with the login of all tests."""
    return open_zookeeper(address, session_timeout_ms=session_timeout_ms, access=ACCESS)


def write_password(file: Path) -> Path:
    """Write the password of all tests for brokers that shall have the same login."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.write_text(PASSWORD)
    return file


def brokers_login(file: Path) -> dict[str, str]:
    """Return settings of brokers that keep their ZooKeeper to the login of all tests."""
    return {
        "zookeeper.username": USER,
        "zookeeper.password.file": str(write_password(file)),
        "zookeeper.set.acl": "true",
    }


def look(address: str, **settings: Any) -> KazooClient:
    """Return a client that has not been started, with the login of all tests."""
    return KazooClient(
        hosts=address,
        auth_data=[("digest", f"{USER}:{PASSWORD}")],
        default_acl=kazoo_acl(ACCESS.grants("")),
        **settings,
    )


@contextmanager
def run_witness(folder: Path) -> Iterator[str]:
    """Run a server until the block ends; return its address."""
    port = free_port()
    said = folder.with_name(f"{folder.name}.log")
    arguments = ["runtime.process.zookeeper_server", "--data", str(folder), "--port", str(port)]
    with said.open("wb") as output:
        process = start_program(*arguments, output=output)
    try:
        _wait_serving(process, said)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def _wait_serving(process: Process, said: Path) -> None:
    """Wait for the program's own word, and begin no session before.

    A server that is still starting may take a connection and never answer it: kazoo would wait for
    its ten seconds before it tries again. The program ends by itself where the server does not come
    up.
    """
    while SERVES not in said.read_text():
        assert process.poll() is None, said.read_text()
        Event().wait(0.02)


@dataclass(slots=True)
class _SharedServer:
    """The ZooKeeper of clusters that have none of their own: one for each process of tests."""

    running: ExitStack = field(default_factory=ExitStack)
    address: str = ""
    clusters: int = 0

    def next_chroot(self) -> str:
        """Return where the next cluster is to be; starts the server for the first one."""
        if not self.address:
            folder = self.running.enter_context(TemporaryDirectory(prefix="clusters-zookeeper-"))
            self.address = self.running.enter_context(run_witness(Path(folder)))
        self.clusters += 1
        return f"{self.address}/cluster-{self.clusters}"


_SHARED: Final = _SharedServer()


def address_for_cluster() -> str:
    """Return `host:port/chroot` for a cluster that neither kills nor looks after its ZooKeeper."""
    return _SHARED.next_chroot()


def end_shared() -> None:
    """End the ZooKeeper of such clusters, if there was any."""
    _SHARED.running.close()


def make_empty(address: str) -> None:
    """Delete every node."""
    client = look(address)
    client.start(timeout=120)
    for login in OTHER_LOGINS:
        client.add_auth("digest", login)
    try:
        for child in client.get_children("/"):
            if child != KEPT:
                client.delete(f"/{child}", recursive=True)
    finally:
        client.stop()
        client.close()


def assert_ours_alone(client: KazooClient, root: str) -> None:
    """Fail where a node from `root` on is for anybody but the login of all tests."""
    ours = kazoo_acl(ACCESS.grants(""))
    waiting = [root] if client.exists(root) else []
    while waiting:
        path = waiting.pop()
        try:
            rights, _ = client.get_acls(path)
            waiting += [f"{path}/{name}" for name in client.get_children(path)]
        except NoNodeError:
            continue  # of a session that has just ended
        assert rights == ours, f"{path}: {rights}"


async def all_paths(zookeeper: ZooKeeper, path: str = "") -> list[str]:
    names = await zookeeper.children(path or "/") or []
    below = [one for name in names for one in await all_paths(zookeeper, f"{path}/{name}")]
    return [path or "/", *below]


async def is_refused_everything(stranger: ZooKeeper, path: str) -> None:
    """Fail where a login that the node's rights do not name may do anything with it."""
    child = f"{path.rstrip('/')}/mine"
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: stranger.get(path),
        lambda: stranger.children(path),
        lambda: stranger.set(path, b"mine"),
        lambda: stranger.set_rights(path),
        lambda: stranger.create(child),
        lambda: stranger.transaction([Create(path=child)]),
    ]
    if path not in UNDELETABLE:
        attempts.append(lambda: stranger.delete(path))
    for attempt in attempts:
        with pytest.raises(NotAllowed):
            await attempt()
