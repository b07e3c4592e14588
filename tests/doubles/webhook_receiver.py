"""A receiver of webhooks at a port of its own, over HTTPS."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import h11
import trio

from tests.doubles.certificates import Certificates


@dataclass(slots=True, kw_only=True)
class Received:
    """One POST."""

    headers: dict[str, str]
    body: bytes


@dataclass(slots=True, kw_only=True)
class Receiver:
    """Answers every request with the next of these statuses; the last one stays."""

    statuses: list[int]
    port: int = 0
    withheld_bytes: int = 0
    """Of an answer's body, which it announces and does not send."""
    received: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/promotions"

    async def serve(self, stream: trio.SSLStream[trio.SocketStream]) -> None:
        """Answer one request."""
        http = h11.Connection(h11.SERVER)
        found = Received(headers={}, body=b"")
        try:
            while True:
                event = http.next_event()
                if event is h11.NEED_DATA:
                    http.receive_data(bytes(await stream.receive_some()))
                elif isinstance(event, h11.Request):
                    found.headers = {k.decode(): v.decode() for k, v in event.headers}
                elif isinstance(event, h11.Data):
                    found.body += event.data
                else:
                    break
            self.received.append(found)
            status = self.statuses[0] if len(self.statuses) == 1 else self.statuses.pop(0)
            length = f"{self.withheld_bytes}"
            head = h11.Response(status_code=status, headers=[("Content-Length", length)])
            await stream.send_all(http.send(head) or b"")
            await stream.aclose()
        except trio.BrokenResourceError:
            return  # the client did not trust us


@asynccontextmanager
async def receiving(certificates: Certificates, *statuses: int) -> AsyncIterator[Receiver]:
    """Serve until the block ends."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.broker, certificates.key(certificates.broker))
    [plain] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    receiver = Receiver(statuses=list(statuses), port=plain.socket.getsockname()[1])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, receiver.serve, [trio.SSLListener(plain, context)])
        yield receiver
        nursery.cancel_scope.cancel()
