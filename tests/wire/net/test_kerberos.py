"""The exchange of GSSAPI with a context that is played: tickets themselves are the library's."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tests.doubles.fake_cluster import FakeBroker
from tests.doubles.sasl_broker import AUTHENTICATE, HANDSHAKE, SaslScripts
from tests.wire.net.sasl_pool import METADATA, PLACE, pool_with
from wire.headers import RequestHeader
from wire.messages.sasl_authenticate import SaslAuthenticateResponse
from wire.net import AuthenticationFailed, kerberos
from wire.net.errors import TokenUnavailable
from wire.net.kerberos import CHOICE, KerberosExchange, KerberosRefused
from wire.net.security import KerberosSasl

OFFER = b"\x07\x00\x40\x00"
"""All three layers, and 16 KiB at a time."""


class GssFault(Exception):
    """What the library raises."""


@dataclass
class Context:
    """Is complete behind so many tokens; a wrapped message is `<message>`."""

    tokens: int = 2
    taken: list[bytes | None] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return len(self.taken) >= self.tokens

    def step(self, token: bytes | None = None) -> bytes | None:
        if token == b"bad":
            raise GssFault("Major (1): Wrong\nprincipal in request")
        self.taken.append(token)
        return None if self.complete else b"token %d" % len(self.taken)

    def wrap(self, message: bytes, encrypt: bool) -> Any:
        assert not encrypt
        return SimpleNamespace(message=b"<" + message + b">")

    def unwrap(self, message: bytes) -> Any:
        return SimpleNamespace(message=message[1:-1])


def begun(context: Context) -> KerberosExchange:
    return KerberosExchange(context, context.step() or b"", GssFault)


def test_the_layer_is_chosen_once_both_sides_have_shown_who_they_are() -> None:
    exchange = begun(Context())
    assert exchange.first == b"token 1"
    assert exchange.answer(b"theirs") == b"", "it had the last word"
    assert exchange.answer(b"<" + OFFER + b">") == b"<" + CHOICE + b">"
    assert exchange.answer(b"") is None


@pytest.mark.parametrize("offer", [b"\x06\x00\x40\x00", b"\x01", b"", OFFER * 2])
def test_a_broker_that_wants_a_layer_or_talks_rubbish_is_refused(offer: bytes) -> None:
    exchange = begun(Context())
    exchange.answer(b"theirs")
    with pytest.raises(KerberosRefused, match="security layer"):
        exchange.answer(b"<" + offer + b">")


def test_what_the_library_says_is_one_line() -> None:
    with pytest.raises(KerberosRefused, match=r"^Major \(1\): Wrong principal in request$"):
        begun(Context()).answer(b"bad")


@dataclass
class KerberosBroker(SaslScripts):
    """Plays the broker of `Context`."""

    answers: tuple[bytes, ...] = (b"theirs", b"<" + OFFER + b">", b"")
    lifetime_ms: int = 0

    def install(self, broker: FakeBroker) -> None:
        broker.scripts[HANDSHAKE] = self._handshake
        broker.scripts[AUTHENTICATE] = self._play
        broker.cluster.versions[HANDSHAKE] = range(2)
        broker.cluster.versions[AUTHENTICATE] = range(3)

    async def _play(self, _: RequestHeader, request: Any) -> SaslAuthenticateResponse:
        self.messages.append(bytes(request.auth_bytes))
        answer, *rest = self.answers
        self.answers = tuple(rest)
        return SaslAuthenticateResponse(
            error_code=0, auth_bytes=answer, session_lifetime_ms=self.lifetime_ms
        )


SASL = KerberosSasl(key="clusters.dc2.sasl")


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have the library give a context for each host that it is asked for, and note the hosts."""
    asked: list[str] = []

    def begin(_: KerberosSasl, host: str) -> KerberosExchange:
        asked.append(host)
        return begun(Context())

    monkeypatch.setattr(kerberos.KerberosExchange, "begin", begin)
    return asked


async def test_a_connection_is_let_in_by_a_ticket_for_its_host(hosts: list[str]) -> None:
    scripts = KerberosBroker()
    async with pool_with(SASL, scripts) as (pool, _):
        connection = await pool.connection(PLACE)
        assert (await connection.request(METADATA)).topics == ()
    assert scripts.messages == [b"token 1", b"", b"<" + CHOICE + b">"]
    assert hosts == [PLACE[0]]


@pytest.mark.usefixtures("hosts")
async def test_a_broker_that_is_not_who_it_says_is_named_with_the_login() -> None:
    said = r"dc2: memory:1: SASL authentication failed: .*Wrong.* \(a ticket of clusters\.dc2\.sasl"
    async with pool_with(SASL, KerberosBroker(answers=(b"bad",))) as (pool, _):
        with pytest.raises(AuthenticationFailed, match=said):
            await pool.connection(PLACE)


async def test_without_a_ticket_the_broker_hears_of_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def begin(sasl: KerberosSasl, host: str) -> KerberosExchange:
        raise TokenUnavailable(f"{sasl.key}: no ticket for kafka@{host}: no KDC")

    monkeypatch.setattr(kerberos.KerberosExchange, "begin", begin)
    scripts = KerberosBroker()
    async with pool_with(SASL, scripts) as (pool, _):
        with pytest.raises(TokenUnavailable, match=r"clusters\.dc2\.sasl: no ticket for kafka@mem"):
            await pool.connection(PLACE)
    assert scripts.messages == []
