"""One request over a connection of its own."""

import trio


async def exchange(port: int, request: bytes) -> bytes:
    """Return the whole answer."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        await stream.send_all(request)
        answer = b""
        async for chunk in stream:
            answer += chunk
        return answer
