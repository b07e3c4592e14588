"""`failover secure`, against a real witness that was used without a login or with another one."""

from pathlib import Path

import pytest
from kazoo.security import ACL, Id

from failover.secure import CannotSecure, secure
from runtime.configuration.config import Configuration, load
from runtime.coordination.witness import ActiveSite, WitnessPaths
from runtime.coordination.zookeeper import NotAllowed, open_zookeeper
from runtime.coordination.zookeeper_access import OPEN, NodeRight, digest_identity
from runtime.pair.opening import make_shared
from tests.dc_yaml import dc_yaml
from tests.zookeeper import look

pytestmark = pytest.mark.integration
PATHS = WitnessPaths(root="/kafka-dr")


NEW = "new"


def configured(folder: Path, witness: str, password: str = NEW, **more: str) -> Configuration:
    file = folder / "dc.yaml"
    auth = {"username": "dr", "password": password, **more}
    file.write_text(dc_yaml(witness=witness, coordination={"auth": auth}))
    return load(file)


async def _write_tree(witness: str, configuration: Configuration | None = None) -> None:
    access = OPEN if configuration is None else configuration.coordination.access
    async with open_zookeeper(witness, session_timeout_ms=4_000, access=access) as zookeeper:
        await zookeeper.ensure(PATHS.root)
        await zookeeper.create(PATHS.active, ActiveSite(site="dc1", epoch=3).encode())
        await zookeeper.create(PATHS.command("dc1", "dc2"), b"stop", make_parents=True)
        await make_shared(zookeeper, PATHS)


async def test_a_witness_that_was_everybodys_is_ours_alone_afterwards(
    empty_zookeeper: str, tmp_path: Path
) -> None:
    await _write_tree(empty_zookeeper)
    configuration = configured(tmp_path, empty_zookeeper)
    shown: list[str] = []
    assert not await secure(configuration, write=False, show=shown.append)
    assert shown[0] == f"login       {digest_identity('dr', 'new')}"
    assert "/kafka-dr/active: world:anyone may read+write+create+delete+admin" in shown
    assert (
        shown[-1] == "6 nodes have other rights than they should; nothing was changed: --write does"
    )
    async with open_zookeeper(empty_zookeeper, session_timeout_ms=4_000) as anybody:
        await anybody.set(PATHS.active, ActiveSite(site="dc1", epoch=4).encode())

        assert await secure(configuration, write=True, show=shown.append)
        assert shown[-1] == "6 nodes were given to our login"
        assert await secure(configuration, write=False, show=shown.append)
        assert shown[-1] == "all nodes have the rights that they should"

        for path in (PATHS.active, PATHS.command("dc1", "dc2"), PATHS.groups):
            with pytest.raises(NotAllowed):
                await anybody.set(path, b"mine")


async def test_nodes_of_a_login_whose_password_is_unknown_are_named(
    empty_zookeeper: str, tmp_path: Path
) -> None:
    old = configured(tmp_path, empty_zookeeper, "old")
    await _write_tree(empty_zookeeper, old)
    shown: list[str] = []
    with pytest.raises(CannotSecure, match=r"1 nodes are another login's.*previous_password"):
        await secure(configured(tmp_path, empty_zookeeper), write=True, show=shown.append)
    assert shown[-1] == "/kafka-dr: its rights are for another login than ours"

    both = configured(tmp_path, empty_zookeeper, previous_password="old")  # noqa: S106
    assert await secure(both, write=True, show=shown.append)
    async with open_zookeeper(
        empty_zookeeper, session_timeout_ms=4_000, access=old.coordination.access
    ) as not_restarted:
        assert await not_restarted.get(PATHS.active) is not None
        ours = configured(tmp_path, empty_zookeeper)
        assert await secure(ours, write=True, show=shown.append)
        with pytest.raises(NotAllowed):
            await not_restarted.get(PATHS.active)


async def test_what_lies_below_a_node_that_cannot_be_listed_is_set_right_too(
    empty_zookeeper: str, tmp_path: Path
) -> None:
    configuration = configured(tmp_path, empty_zookeeper)
    await _write_tree(empty_zookeeper)
    ours = digest_identity("dr", "new")
    client = look(empty_zookeeper)
    client.start()
    client.set_acls(
        PATHS.flow("dc1", "dc2"), [ACL(int(NodeRight.ADMIN), Id(ours.scheme, ours.name))]
    )
    client.stop()
    client.close()
    assert await secure(configuration, write=True, show=lambda _: None)
    assert await secure(configuration, write=False, show=lambda _: None)
    async with open_zookeeper(empty_zookeeper, session_timeout_ms=4_000) as anybody:
        with pytest.raises(NotAllowed):
            await anybody.set(PATHS.command("dc1", "dc2"), b"run")


async def test_a_witness_without_the_pair_is_not_called_secure(
    empty_zookeeper: str, tmp_path: Path
) -> None:
    for write in (False, True):
        configuration = configured(tmp_path, empty_zookeeper)
        with pytest.raises(CannotSecure, match="holds nothing at /kafka-dr"):
            await secure(configuration, write=write, show=lambda _: None)


async def test_applications_keep_what_they_need(empty_zookeeper: str, tmp_path: Path) -> None:
    await _write_tree(empty_zookeeper)
    apps = digest_identity("apps", "theirs")
    configuration = configured(tmp_path, empty_zookeeper, applications=str(apps))
    assert await secure(configuration, write=True, show=lambda _: None)
    programs = str(digest_identity("dr", "new"))
    theirs = configured(tmp_path, empty_zookeeper, "theirs", programs=programs, username="apps")
    async with open_zookeeper(
        empty_zookeeper, session_timeout_ms=4_000, access=theirs.coordination.access
    ) as application:
        assert await application.get(PATHS.active) is not None
        await application.create(f"{PATHS.group('g')}/one", b"", make_parents=True)
        with pytest.raises(NotAllowed):
            await application.set(PATHS.active, b"dc2")
        with pytest.raises(NotAllowed):
            await application.get(PATHS.command("dc1", "dc2"))


async def test_without_a_login_there_is_nobody_to_give_nodes_to(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(coordination={"auth": None}))
    with pytest.raises(CannotSecure, match=r"coordination\.auth names no login"):
        await secure(load(file), write=True, show=lambda _: None)
