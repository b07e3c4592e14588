"""Against a real ZooKeeper: after the walk every node of a cluster is for one login alone."""

import logging
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from broker.zookeeper.taking_over import NotOurCluster, take_over
from runtime.coordination.node_rights import unexpected_rights
from runtime.coordination.zookeeper import NotAllowed, ZooKeeper, open_zookeeper
from runtime.coordination.zookeeper_access import OPEN, Login, LoginMechanism, ZooKeeperAccess
from runtime.process.zookeeper_server import ServerDoors, run_zookeeper
from tests.zookeeper import all_paths, is_refused_everything

pytestmark = pytest.mark.integration
BOARD = "/brokers/topics/board/partitions/0/state"
EVERYBODYS = (BOARD, "/config/users/mirror", "/kafka-acl/Topic/board", "/controller_epoch")


def by(password: str) -> ZooKeeperAccess:
    return ZooKeeperAccess(
        login=Login(mechanism=LoginMechanism.DIGEST, username="broker", password=password)
    )


FIRST, SECOND, STRANGER = by("first"), by("second"), by("guessed")


def session(address: str, access: ZooKeeperAccess) -> AbstractAsyncContextManager[ZooKeeper]:
    return open_zookeeper(address, session_timeout_ms=4_000, access=access)


def owned_by(access: ZooKeeperAccess) -> ServerDoors:
    assert access.login is not None
    return ServerDoors(owner=access.login.identity.name)


async def open_paths(zookeeper: ZooKeeper) -> list[str]:
    """Return the paths that others than our login may do anything with."""
    found = []
    for path in await all_paths(zookeeper):
        rights = await zookeeper.rights(path)
        if rights is not None and unexpected_rights(path, rights, zookeeper.access):
            found.append(path)
    return found


async def test_what_lay_open_is_closed_to_everybody_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with run_zookeeper(tmp_path, doors=owned_by(FIRST)) as server:
        async with session(server.address, OPEN) as zookeeper:
            for path in EVERYBODYS:
                await zookeeper.create(path, b"before", make_parents=True)
        async with session(server.address, STRANGER) as stranger:
            await stranger.create("/brokers/ids", make_parents=True)  # with rights for itself
        async with session(server.address, FIRST) as zookeeper:
            for path in ("/", "/brokers", "/brokers/topics"):  # a walk that did not end
                await zookeeper.set_rights(path)
            await take_over(zookeeper)
            assert await open_paths(zookeeper) == []
            node = await zookeeper.get(BOARD)
            assert node is not None
            assert node.data == b"before"
            paths = await all_paths(zookeeper)
        for access in (OPEN, STRANGER):
            async with session(server.address, access) as stranger:
                for path in paths:
                    await is_refused_everything(stranger, path)
        caplog.clear()
        with caplog.at_level(logging.INFO, "broker"):
            async with session(server.address, FIRST) as zookeeper:
                await take_over(zookeeper)
        assert caplog.messages == [], "it is done once"


async def test_a_password_made_anew_gets_everything_and_another_one_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with run_zookeeper(tmp_path, doors=owned_by(SECOND)) as server:
        async with session(server.address, OPEN) as zookeeper:
            await zookeeper.create("/kafka-dr/active", b"dc1", make_parents=True)
            await zookeeper.create(BOARD, make_parents=True)
        async with session(server.address, FIRST) as zookeeper:
            await take_over(zookeeper)
            assert await open_paths(zookeeper) == [  # what only the server's owner may change
                *("/kafka-dr", "/kafka-dr/active"),
                "/zookeeper/config",
            ]
            assert "not the cluster's, and left alone: /kafka-dr" in caplog.text
        async with session(server.address, STRANGER) as stranger:
            with pytest.raises(NotOurCluster, match="/cluster/owner: it is another login's"):
                await take_over(stranger)
        async with session(server.address, SECOND) as zookeeper:
            await take_over(zookeeper)
            assert await open_paths(zookeeper) == ["/kafka-dr", "/kafka-dr/active"]
        async with session(server.address, FIRST) as former:
            with pytest.raises(NotAllowed):
                await former.get(BOARD)


class Killed(Exception):
    """The broker is gone, in the middle of its walk."""


class Dying:
    """A session whose owner is killed before it changes anything for the so-and-so-many-th time."""

    def __init__(self, zookeeper: ZooKeeper, changes: int) -> None:
        self._zookeeper = zookeeper
        self._left = changes

    def __getattr__(self, name: str) -> Any:
        if name not in {"set_rights", "create", "set"}:
            return getattr(self._zookeeper, name)

        async def change(*arguments: Any, **more: Any) -> object:
            if self._left == 0:
                raise Killed
            self._left -= 1
            return await getattr(self._zookeeper, name)(*arguments, **more)

        return change


async def test_a_walk_that_was_killed_at_any_change_is_ended_by_the_next_one(
    tmp_path: Path,
) -> None:
    killed, leaving_open = 0, replace(FIRST, leaves_open=True)
    async with (
        run_zookeeper(tmp_path, doors=owned_by(FIRST)) as server,
        session(server.address, FIRST) as zookeeper,
        session(server.address, leaving_open) as opener,
    ):
        while True:
            await _begin_anew(opener)
            try:
                await take_over(cast("ZooKeeper", Dying(zookeeper, killed)))
            except* Killed:
                assert await zookeeper.get("/cluster/owner") is None, "it says nothing yet"
                killed += 1
            else:
                break
            await take_over(zookeeper)
            assert await open_paths(zookeeper) == []
    assert killed > len(EVERYBODYS)


async def _begin_anew(opener: ZooKeeper) -> None:
    """Have the nodes of a cluster without a login."""
    await opener.set_rights("/")
    for path in reversed(await all_paths(opener)):
        if not path.startswith("/zookeeper") and path != "/":
            await opener.delete(path)
    for path in EVERYBODYS:
        await opener.create(path, make_parents=True)
