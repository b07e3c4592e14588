"""An issuer of tokens at a port of its own: HTTPS, client credentials."""

import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote_plus

import h11
import trio

from tests.doubles.certificates import Certificates

CLIENT_ID, CLIENT_SECRET = "mirror of dc1", "p&ss:word%"


def any_token(number: int) -> str:
    """Return a token that nobody has signed."""
    return f"token-{number}"


@dataclass(slots=True, kw_only=True)
class Issuer:
    """Gives `make(1)`, `make(2)` and so on to a client that shows the right secret."""

    port: int = 0
    make: Callable[[int], str] = any_token
    life_s: int = 300
    given: int = 0
    forms: list[dict[str, list[str]]] = field(default_factory=list)
    replies_with: bytes | None = None
    """Sent instead of an answer."""
    says_nothing: bool = False

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/realms/kafka/token?tenant=1"

    async def serve(self, stream: trio.SSLStream[trio.SocketStream]) -> None:
        """Answer one request."""
        http = h11.Connection(h11.SERVER)
        form, is_known = b"", False
        try:
            while True:
                event = http.next_event()
                if event is h11.NEED_DATA:
                    http.receive_data(bytes(await stream.receive_some()))
                elif isinstance(event, h11.Request):
                    is_known = _is_known(event)
                elif isinstance(event, h11.Data):
                    form += event.data
                else:
                    break
            if self.says_nothing:
                await trio.sleep_forever()
            self.forms.append(parse_qs(form.decode()))
            await stream.send_all(self.replies_with or self._answer(http, is_known=is_known))
            await stream.aclose()
        except trio.BrokenResourceError:
            return  # the client did not trust us

    def _answer(self, http: h11.Connection, *, is_known: bool) -> bytes:
        said: dict[str, object] = {"error": "invalid_client", "error_description": CLIENT_SECRET}
        if is_known:
            self.given += 1
            said = {
                "access_token": self.make(self.given),
                "token_type": "bearer",
                "expires_in": self.life_s,
            }
        body = json.dumps(said).encode()
        head = h11.Response(
            status_code=200 if is_known else 401,
            headers=[("Content-Type", "application/json"), ("Content-Length", f"{len(body)}")],
        )
        parts = [http.send(one) for one in (head, h11.Data(data=body), h11.EndOfMessage())]
        return b"".join(part for part in parts if part)


def _is_known(request: h11.Request) -> bool:
    headers = dict(request.headers)
    scheme, _, credentials = headers.get(b"authorization", b"").partition(b" ")
    name, _, secret = base64.b64decode(credentials).decode().partition(":")
    shown = scheme, unquote_plus(name), unquote_plus(secret)
    return (request.method, shown) == (b"POST", (b"Basic", CLIENT_ID, CLIENT_SECRET))


@asynccontextmanager
async def serving_tokens(issuer: Issuer, certificates: Certificates) -> AsyncIterator[Issuer]:
    """Serve until the block ends."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.broker, certificates.key(certificates.broker))
    [plain] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    listener = trio.SSLListener(plain, context)
    issuer.port = plain.socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, issuer.serve, [listener])
        yield issuer
        nursery.cancel_scope.cancel()
