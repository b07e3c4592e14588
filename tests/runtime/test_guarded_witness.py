"""A real ZooKeeper with TLS and users: who comes in, and who may do what once in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from runtime.coordination.zookeeper import (
    Create,
    NotAllowed,
    ZooKeeper,
    ZooKeeperUnreachable,
    open_zookeeper,
)
from runtime.coordination.zookeeper_access import (
    ALL,
    OPEN,
    Grant,
    Login,
    LoginMechanism,
    NodeRight,
    ZooKeeperAccess,
    digest_identity,
)
from runtime.pair.witness_rights import find_unexpected_rights
from runtime.process.zookeeper_server import ServerDoors, run_zookeeper
from tests.doubles.certificates import Certificates
from wire.net.secret_file import FileSecret
from wire.net.security import Tls

pytestmark = pytest.mark.integration
USERS = {"dr": "right"}


def digest(password: str, previous: str | None = None) -> Login:
    return Login(
        mechanism=LoginMechanism.DIGEST,
        username="dr",
        password=password,
        previous_password=previous,
    )


@asynccontextmanager
async def session(
    hosts: str, access: ZooKeeperAccess, start_timeout_ms: int = 30_000
) -> AsyncIterator[ZooKeeper]:
    async with open_zookeeper(
        hosts, session_timeout_ms=4_000, start_timeout_ms=start_timeout_ms, access=access
    ) as zookeeper:
        yield zookeeper


async def test_a_session_reads_what_it_makes_once_the_file_has_another_password(
    empty_zookeeper: str, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("right")
    login = replace(digest(""), password=FileSecret(file=file, last_known="right"))
    access = ZooKeeperAccess(login=login)
    async with session(empty_zookeeper, access) as zookeeper:
        file.write_text("new")
        await zookeeper.create("/p/mirror/one", b"1", make_parents=True)
        await zookeeper.transaction([Create(path="/p/mirror/two", data=b"2")])
        for name in ("one", "two"):
            assert await zookeeper.set(f"/p/mirror/{name}", b"again") == 1
        await zookeeper.delete("/p", recursive=True)


async def test_what_one_login_makes_no_other_reads_writes_or_deletes(empty_zookeeper: str) -> None:
    ours = ZooKeeperAccess(login=digest("right"))
    async with session(empty_zookeeper, ours) as zookeeper:
        await zookeeper.create("/p/active", b"dc1", make_parents=True)
        await zookeeper.transaction([Create(path="/p/pair", data=b"x")])
        await zookeeper.ensure("/p/mirror/flow")
        assert [one async for one in find_unexpected_rights(zookeeper, ours, "/p")] == []
    shown = (OPEN, "no login"), (ZooKeeperAccess(login=digest("wrong")), "user 'dr'")
    for access, who in shown:
        async with session(empty_zookeeper, access) as zookeeper:
            for attempt in (
                lambda: zookeeper.get("/p/active"),
                lambda: zookeeper.set("/p/active", b"dc2"),
                lambda: zookeeper.delete("/p/pair"),
                lambda: zookeeper.create("/p/mirror/flow/command", b"stop"),
                lambda: zookeeper.children("/p"),
                lambda: zookeeper.transaction([Create(path="/p/x")]),
                lambda: zookeeper.set_rights("/p/active"),
            ):
                with pytest.raises(NotAllowed, match=rf"another login than ours \({who}"):
                    await attempt()
    async with session(empty_zookeeper, ours) as zookeeper:
        node = await zookeeper.get("/p/active")
        assert node is not None
        assert node.data == b"dc1"
        await zookeeper.delete("/p", recursive=True)


async def test_applications_may_follow_and_hand_over_and_no_more(empty_zookeeper: str) -> None:
    of_apps = replace(digest("theirs"), username="apps")
    shared = {
        "/p/active": Grant(of_apps.identity, NodeRight.READ),
        "/p/groups": Grant(of_apps.identity, NodeRight.READ | NodeRight.CREATE),
        "/p/groups/": Grant(of_apps.identity, ALL),
    }
    ours = ZooKeeperAccess(login=digest("right"), shared=shared)
    apps = ZooKeeperAccess(login=of_apps, also=(digest_identity("dr", "right"),))
    async with session(empty_zookeeper, ours) as zookeeper:
        await zookeeper.ensure("/p")
        await zookeeper.create("/p/active", b"dc1")
        await zookeeper.create("/p/groups")
        async with session(empty_zookeeper, apps) as application:
            assert await application.get("/p/active") is not None
            await application.create("/p/groups/g/one", b"5", ephemeral=True, make_parents=True)
            with pytest.raises(NotAllowed):
                await application.set("/p/active", b"dc2")
            with pytest.raises(NotAllowed):
                await application.create("/p/failover")
            posted = await zookeeper.get("/p/groups/g/one")
            assert posted is not None
            assert posted.data == b"5"
            assert [one async for one in find_unexpected_rights(zookeeper, ours, "/p")] == []
        await zookeeper.delete("/p", recursive=True)


async def test_a_password_is_changed_while_both_are_known(empty_zookeeper: str) -> None:
    before = ZooKeeperAccess(login=digest("old"))
    both = ZooKeeperAccess(login=digest("new", previous="old"))
    after = ZooKeeperAccess(login=digest("new"))
    async with session(empty_zookeeper, before) as zookeeper:
        await zookeeper.create("/p/active", b"dc1", make_parents=True)
    async with session(empty_zookeeper, after) as zookeeper:
        (closed,) = [one async for one in find_unexpected_rights(zookeeper, after, "/p")]
        assert str(closed) == "/p: its rights are for another login than ours"
    async with session(empty_zookeeper, both) as zookeeper:
        found = [one.path async for one in find_unexpected_rights(zookeeper, both, "/p")]
        assert found == ["/p", "/p/active"]
        for path in found:
            await zookeeper.set_rights(path)
        await zookeeper.create("/p/pair")
    async with session(empty_zookeeper, before) as zookeeper:  # not started anew yet
        for path in ("/p/active", "/p/pair"):
            assert await zookeeper.get(path) is not None
    async with session(empty_zookeeper, after) as zookeeper:
        found = [one.path async for one in find_unexpected_rights(zookeeper, after, "/p")]
        assert found == ["/p", "/p/active", "/p/pair"]
        for path in found:
            await zookeeper.set_rights(path)
        assert [one async for one in find_unexpected_rights(zookeeper, after, "/p")] == []
        await zookeeper.delete("/p", recursive=True)


def _keys(certificates: Certificates) -> Path:
    file = certificates.folder / "server-keys.pem"
    parts = (certificates.broker, certificates.key(certificates.broker))
    file.write_bytes(b"".join(part.read_bytes() for part in parts))
    return file


async def test_a_server_with_tls_lets_in_who_it_knows(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    client = Tls(
        ca=certificates.ca,
        certificate=certificates.client,
        key=certificates.key(certificates.client),
        key_path="coordination.tls",
    )
    gone = replace(client, ca=tmp_path / "gone.pem")
    strange = replace(client, ca=certificates.strange_ca)
    doors = ServerDoors(keys=_keys(certificates), authorities=certificates.ca)
    async with run_zookeeper(tmp_path / "zookeeper", doors=doors) as server:
        async with session(
            server.address, ZooKeeperAccess(login=digest("right"), tls=client)
        ) as zookeeper:
            await zookeeper.create("/p", b"x" * 500_000)
            node = await zookeeper.get("/p")
            assert node is not None
            assert len(node.data) == 500_000
        for access, why in (
            (ZooKeeperAccess(), "connection"),
            (ZooKeeperAccess(tls=Tls(ca=certificates.ca)), "certificate required|connection"),
            (
                ZooKeeperAccess(tls=strange),
                "TLS: .* is not trusted: .* .trusted is coordination.tls.ca: /.*/strange.pem",
            ),
            (
                ZooKeeperAccess(tls=gone),
                "TLS: No such file or directory .trusted is coordination.tls.ca: /.*/gone.pem",
            ),
        ):
            with pytest.raises(ZooKeeperUnreachable, match=f"did not answer within 2 s.*({why})"):
                async with session(server.address, access, 2_000):
                    pass


async def test_a_user_logs_in_by_sasl_once_the_file_has_the_password(tmp_path: Path) -> None:
    async with run_zookeeper(tmp_path / "zookeeper", doors=ServerDoors(users=USERS)) as server:
        await _logs_in(server.address, tmp_path / "password")


async def _logs_in(hosts: str, file: Path) -> None:
    file.write_text("wrong")
    login = Login(
        mechanism=LoginMechanism.DIGEST_MD5,
        username="dr",
        password=FileSecret(file=file, last_known="wrong"),
    )
    access = ZooKeeperAccess(login=login)
    async with session(hosts, ZooKeeperAccess(login=digest("another"))) as zookeeper:
        await zookeeper.create("/p")
    with pytest.raises(
        ZooKeeperUnreachable,
        match=r"the login is refused .user 'dr' with the password in .*password",
    ):
        async with session(hosts, access, 2_000):
            pass
    async with trio.open_nursery() as nursery:

        async def correct() -> None:
            await trio.sleep(1)
            file.write_text("right")

        nursery.start_soon(correct)
        async with session(hosts, access) as zookeeper:  # it is tried again with the file's word
            await zookeeper.create("/by-sasl")
            assert [
                str(one) async for one in find_unexpected_rights(zookeeper, access, "/by-sasl")
            ] == []
            with pytest.raises(NotAllowed):
                await zookeeper.get("/p")
