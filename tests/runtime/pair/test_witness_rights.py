"""What is said of the witness: who we are there, and whose nodes are open to others."""

from dataclasses import replace

import pytest

from runtime.configuration.coordination_section import CoordinationConfig
from runtime.coordination.zookeeper import open_zookeeper
from runtime.pair.witness_rights import describe_access
from tests.zookeeper import ACCESS

pytestmark = pytest.mark.integration


async def _said(coordination: CoordinationConfig) -> tuple[str, str | None]:
    async with open_zookeeper(
        coordination.zookeeper, session_timeout_ms=4_000, access=coordination.access
    ) as zookeeper:
        return await describe_access(zookeeper, coordination)


async def test_nodes_that_others_may_touch_are_wrong_and_no_login_is_a_warning(
    empty_zookeeper: str,
) -> None:
    unguarded = CoordinationConfig(zookeeper=empty_zookeeper, path="/p", session_timeout_ms=4_000)
    async with open_zookeeper(empty_zookeeper, session_timeout_ms=4_000) as zookeeper:
        await zookeeper.create("/p/active", b"", make_parents=True)
        line, wrong = await _said(unguarded)
        assert line.startswith(f"warning: witness {empty_zookeeper}: no login")
        assert wrong is None
        guarded = replace(unguarded, access=ACCESS)
        line, wrong = await _said(guarded)
        assert ACCESS.login is not None
        assert line == f"witness {empty_zookeeper}: logged in as {ACCESS.login.identity}"
        assert wrong is not None
        assert wrong.startswith(
            "witness: 2 of its nodes have other rights than they should, as /p: "
        )
        assert "`failover secure` lists them" in wrong
    async with open_zookeeper(
        empty_zookeeper, session_timeout_ms=4_000, access=ACCESS
    ) as zookeeper:
        for path in ("/p", "/p/active"):
            await zookeeper.set_rights(path)
        assert (await _said(guarded))[1] is None
