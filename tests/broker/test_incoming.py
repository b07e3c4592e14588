"""Silent connections give their memory back, and end; who speaks now and then stays."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.framing import FrameBuffer
from broker.incoming import RELEASE_AFTER_S, Incoming, SilenceWatch
from broker.metrics import RequestMetrics

IDLE_S = 10


@contextmanager
def connected() -> Iterator[tuple[socket.socket, Incoming, FrameBuffer]]:
    """Return the peer's end, and what arrives at ours."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        frames, metrics = FrameBuffer(1_000), RequestMetrics()
        incoming = Incoming(ours, "peer", ours.recv_into, frames, metrics, is_drained=True)
        yield theirs, incoming, frames


async def test_a_silent_connection_gives_its_buffer_back_and_takes_what_comes_then(
    mock_clock: MockClock,
) -> None:
    watch = SilenceWatch(IDLE_S)
    with connected() as (peer, incoming, frames):
        watch.begin(incoming)
        peer.send(b"\0\0\0\1a")
        assert await incoming.receive()
        assert bytes(frames.next_frame() or b"") == b"a"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.run)
            nursery.start_soon(incoming.receive)
            await wait_all_tasks_blocked()
            assert frames.capacity > 0
            mock_clock.jump(RELEASE_AFTER_S)
            await wait_all_tasks_blocked()
            assert frames.capacity == 0
            peer.send(b"\0\0\0\1b")
            with trio.fail_after(60):
                while (frame := frames.next_frame()) is None:
                    await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert bytes(frame) == b"b"


async def test_a_connection_that_is_silent_for_too_long_ends_as_if_the_peer_had_left(
    mock_clock: MockClock,
) -> None:
    watch = SilenceWatch(IDLE_S)
    with connected() as (_, incoming, _), connected() as (other_peer, other, _):
        received: list[bool] = []

        async def receive() -> None:
            received.append(await incoming.receive())

        async with trio.open_nursery() as nursery:
            for one in (incoming, other):
                watch.begin(one)
            nursery.start_soon(watch.run)
            nursery.start_soon(receive)
            await wait_all_tasks_blocked()
            mock_clock.jump(IDLE_S - 1)
            await wait_all_tasks_blocked()
            assert not received
            other_peer.send(b"speaks")
            assert await other.receive()
            mock_clock.jump(1)
            with trio.fail_after(60):
                while not received:
                    await wait_all_tasks_blocked()
            assert received == [False]
            other_peer.send(b"goes on")
            assert await other.receive()
            nursery.cancel_scope.cancel()


async def test_who_is_looked_after_no_longer_is_left_alone(mock_clock: MockClock) -> None:
    watch = SilenceWatch(IDLE_S)
    with connected() as (peer, incoming, _):
        watch.begin(incoming)
        watch.end(incoming)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.run)
            mock_clock.jump(100 * IDLE_S)
            await wait_all_tasks_blocked()
            peer.send(b"late")
            assert await incoming.receive()
            nursery.cancel_scope.cancel()
