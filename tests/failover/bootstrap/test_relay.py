"""One connection: carried as it comes, looked at by its heads only, and never for ever."""

import ssl
from itertools import pairwise

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, memory_stream_pair

from failover.bootstrap.relay import IdleLimits, _encrypted, carry
from failover.bootstrap.the_way import HEAD, NotTheWay
from tests.doubles.key_stores import Family

METADATA = HEAD.pack(12, 3, 9) + b"12345678"
VERSIONS = HEAD.pack(8, 18, 3) + b"1234"
PRODUCE = HEAD.pack(100, 0, 9) + b"records"
PATIENCE = IdleLimits(idle_s=60, first_s=10)


async def carried(chunks: list[bytes]) -> bytes:
    """Return what a broker hears of what a client says in these chunks."""
    client, ours = memory_stream_pair()
    to_broker, broker = memory_stream_pair()
    heard = bytearray()

    async def listen() -> None:
        async for chunk in broker:
            heard.extend(chunk)

    async def say() -> None:
        async with client:
            for chunk in chunks:
                await client.send_all(chunk)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        nursery.start_soon(say)
        async with to_broker:
            await carry(ours, to_broker, PATIENCE)
    return bytes(heard)


@given(
    st.lists(st.sampled_from([METADATA, VERSIONS]), max_size=5).map(b"".join),
    st.lists(st.integers(0, 100), max_size=8),
)
def test_requests_arrive_as_they_were_sent_however_they_are_cut(
    said: bytes, cuts: list[int]
) -> None:
    places = [0, *sorted(min(cut, len(said)) for cut in cuts), len(said)]
    chunks = [said[a:b] for a, b in pairwise(places) if a < b]
    assert trio.run(carried, chunks) == said


async def test_another_request_ends_the_connection_before_the_broker_hears_of_it() -> None:
    client, ours = memory_stream_pair()
    to_broker, broker = memory_stream_pair()
    await client.send_all(METADATA + PRODUCE)
    with pytest.raises(NotTheWay, match="API 0"):
        await carry(ours, to_broker, PATIENCE)
    await to_broker.aclose()
    assert await broker.receive_some() in (b"", METADATA)


async def test_answers_go_back_and_the_brokers_leaving_ends_it() -> None:
    client, ours = memory_stream_pair()
    to_broker, broker = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(carry, ours, to_broker, PATIENCE)
        await client.send_all(METADATA)
        assert await broker.receive_some() == METADATA
        await broker.send_all(b"an answer")
        assert await client.receive_some() == b"an answer"
        await broker.aclose()


@pytest.mark.parametrize(("said", "ends_at_s"), [(b"", 10), (METADATA[:5], 10), (METADATA, 60)])
async def test_who_says_nothing_is_let_go(
    said: bytes, ends_at_s: float, autojump_clock: MockClock
) -> None:
    client, ours = memory_stream_pair()
    to_broker, _broker = memory_stream_pair()
    await client.send_all(said)
    await carry(ours, to_broker, PATIENCE)
    assert autojump_clock.current_time() == pytest.approx(ends_at_s)


async def test_a_client_that_reads_nothing_is_let_go(autojump_clock: MockClock) -> None:
    client, ours = memory_stream_pair()
    to_broker, broker = memory_stream_pair()
    ours.send_stream.send_all_hook = trio.sleep_forever
    await client.send_all(METADATA)
    await broker.send_all(b"an answer")
    await carry(ours, to_broker, PATIENCE)
    assert autojump_clock.current_time() == pytest.approx(60)


async def test_a_brokers_name_may_have_a_dot_at_its_end() -> None:
    family = Family()
    context = ssl.create_default_context(cadata=family.root.pem())
    near, far = memory_stream_pair()
    broker = trio.SSLStream(far, family.server_context(), server_side=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.do_handshake)
        await _encrypted(near, context, "localhost.")
