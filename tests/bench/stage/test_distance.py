"""What is far away answers late, completely and in order."""

from functools import partial

import trio

from tests.bench.stage.distance import HOST, serve

ONE_WAY_S = 0.04


async def echo(stream: trio.SocketStream) -> None:
    async with stream:
        while data := await stream.receive_some(1000):
            await stream.send_all(data)


async def test_an_answer_takes_a_round_trip_and_many_under_way_take_no_longer() -> None:
    sent = b"".join(number.to_bytes(4) for number in range(50_000))
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, echo, 0, host=HOST))
        target = listeners[0].socket.getsockname()[1]
        port = await nursery.start(serve, 0, target, ONE_WAY_S)
        async with await trio.open_tcp_stream(HOST, port) as stream:
            began = trio.current_time()
            nursery.start_soon(stream.send_all, sent)
            first = await stream.receive_some(1)
            assert trio.current_time() >= began + 2 * ONE_WAY_S
            received = bytearray(first)
            while len(received) < len(sent):
                received += await stream.receive_some(100_000)
            assert received == sent
        nursery.cancel_scope.cancel()


async def test_when_the_target_hangs_up_so_does_the_far_end() -> None:
    async def hang_up(stream: trio.SocketStream) -> None:
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, hang_up, 0, host=HOST))
        target = listeners[0].socket.getsockname()[1]
        port = await nursery.start(serve, 0, target, ONE_WAY_S)
        async with await trio.open_tcp_stream(HOST, port) as stream:
            assert await stream.receive_some(1) == b""
        nursery.cancel_scope.cancel()
