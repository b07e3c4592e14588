"""Authentication on a connection: each mechanism, each refusal, and renewal in time."""

from itertools import pairwise
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.doubles.sasl_broker import AUTHENTICATE, HANDSHAKE, RIGHT, WRONG, SaslScripts
from tests.wire.net.sasl_pool import METADATA, PLACE, pool_with
from wire.net import AuthenticationFailed, ConnectionClosed
from wire.net.backoff import REFUSED
from wire.net.secret_file import FileSecret
from wire.net.security import WITH_PASSWORDS, Mechanism, Sasl

SCRAM = Sasl(mechanism=Mechanism.SCRAM_SHA_512, username="mirror", password=RIGHT)


@pytest.mark.parametrize("mechanism", WITH_PASSWORDS)
async def test_each_mechanism_lets_us_in(mechanism: Mechanism) -> None:
    sasl = Sasl(mechanism=mechanism, username="mirror", password=RIGHT)
    scripts = SaslScripts()
    async with pool_with(sasl, scripts) as (pool, _):
        connection = await pool.connection(PLACE)
        assert (await connection.request(METADATA)).topics == ()
        assert scripts.chosen is mechanism
        assert connection.name == "dc2: memory:1"


async def test_a_wrong_password_names_cluster_address_and_cause() -> None:
    async with pool_with(SCRAM, SaslScripts(password=WRONG)) as (pool, _):
        with pytest.raises(AuthenticationFailed) as caught:
            await pool.connection(PLACE)
    assert str(caught.value).startswith("dc2: memory:1: SASL authentication failed: Authentication")
    assert RIGHT not in repr(SCRAM)


@pytest.mark.parametrize("mechanism", WITH_PASSWORDS)
async def test_a_password_that_changes_on_the_broker_and_in_its_file_is_taken_up(
    mechanism: Mechanism,
    tmp_path: Path,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    file = tmp_path / "password"
    file.write_text(f"{RIGHT}\n")
    secret = FileSecret(file=file, last_known=RIGHT)
    sasl = Sasl(mechanism=mechanism, username="mirror", password=secret)
    scripts = SaslScripts()
    async with pool_with(sasl, scripts) as (pool, _):
        first = await pool.connection(PLACE)
        scripts.password = WRONG
        first.close("the broker was restarted")
        with pytest.raises(AuthenticationFailed):
            await pool.connection(PLACE)
        file.write_text(f"{WRONG}\n")
        await trio.sleep(REFUSED.longest_ms / 1_000)
        second = await pool.connection(PLACE)
        assert (await second.request(METADATA)).topics == ()


async def test_a_mechanism_that_is_off_is_told_with_those_that_are_on() -> None:
    scripts = SaslScripts(mechanisms=(Mechanism.PLAIN,))
    async with pool_with(SCRAM, scripts) as (pool, _):
        with pytest.raises(AuthenticationFailed, match=r"SCRAM-SHA-512 is not enabled.*only PLAIN"):
            await pool.connection(PLACE)


async def test_a_refused_password_is_not_tried_all_the_time(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    scripts = SaslScripts(password=WRONG)
    tried_at: list[float] = []
    async with pool_with(SCRAM, scripts) as (pool, _):
        for _ in range(4_000):  # somebody asks ten times a second
            before = scripts.attempts
            with pytest.raises(AuthenticationFailed, match="SASL authentication failed"):
                await pool.connection(PLACE)
            if scripts.attempts > before:
                tried_at.append(trio.current_time())
            await trio.sleep(0.1)
        waits = [later - earlier for earlier, later in pairwise(tried_at)]
        assert waits == sorted(waits[:5]) + waits[5:]
        assert max(waits) > 0.8 * REFUSED.longest_ms / 1_000
        assert len(tried_at) < 25


async def test_a_session_is_renewed_before_it_ends_and_nobody_talks_in_between(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    scripts = SaslScripts(lifetime_ms=10_000)
    async with pool_with(SCRAM, scripts) as (pool, broker):
        connection = await pool.connection(PLACE)

        async def ask(pause_s: float) -> None:
            for _ in range(40):
                await connection.request(METADATA)
                await trio.sleep(pause_s)

        async with trio.open_nursery() as nursery:
            for tenths in range(5):
                nursery.start_soon(ask, 1 + tenths / 10)
        assert scripts.attempts in range(5, 8)
        keys = [header.api_key for header, _ in broker.asked]
        for place, key in enumerate(keys):
            if key == HANDSHAKE:
                assert keys[place + 1 : place + 3] == [AUTHENTICATE, AUTHENTICATE]
        assert connection.is_open


async def test_a_session_without_an_end_is_not_renewed(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    scripts = SaslScripts(lifetime_ms=0)
    async with pool_with(SCRAM, scripts) as (pool, _):
        connection = await pool.connection(PLACE)
        await trio.sleep(80_000)
        await connection.request(METADATA)
        assert scripts.attempts == 1


async def test_a_renewal_that_is_refused_ends_the_connection(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    scripts = SaslScripts(lifetime_ms=10_000)
    async with pool_with(SCRAM, scripts) as (pool, _):
        connection = await pool.connection(PLACE)
        scripts.password = WRONG
        await trio.sleep(10)
        with pytest.raises(ConnectionClosed, match="SASL authentication failed"):
            await connection.request(METADATA)
        assert not connection.is_open
        with pytest.raises(AuthenticationFailed):
            await pool.connection(PLACE)
