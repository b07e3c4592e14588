"""Client credentials at an issuer over HTTPS: what is sent, and each way in which it may fail."""

from pathlib import Path

import pytest
import trio

from runtime.tokens.https_address import parse_https
from runtime.tokens.token_endpoint import TokenEndpoint
from tests.doubles.certificates import Certificates
from tests.doubles.issuer import CLIENT_ID, CLIENT_SECRET, Issuer, serving_tokens
from wire.net.errors import TokenUnavailable
from wire.net.security import Token

KEY = "clusters.dc1.sasl.token_endpoint"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def endpoint(
    issuer: Issuer, ca: Path, secret: str = CLIENT_SECRET, deadline_s: float = 30.0
) -> TokenEndpoint:
    return TokenEndpoint(
        key=KEY,
        address=parse_https(issuer.url),
        client_id=CLIENT_ID,
        client_secret=secret,
        scope="kafka read",
        audience="dc1",
        ca=ca,
        deadline_s=deadline_s,
    )


async def ask(source: TokenEndpoint) -> Token:
    return await trio.to_thread.run_sync(source.token)


async def complaint(source: TokenEndpoint, issuer: Issuer) -> str:
    with pytest.raises(TokenUnavailable) as caught:
        await ask(source)
    start = f"{KEY}: https://127.0.0.1:{issuer.port}/realms/kafka/token: "
    assert str(caught.value).startswith(start)
    assert CLIENT_SECRET not in str(caught.value) + repr(source)
    return str(caught.value).removeprefix(start)


async def test_a_token_is_given_for_scope_and_audience(certificates: Certificates) -> None:
    async with serving_tokens(Issuer(), certificates) as issuer:
        source = endpoint(issuer, certificates.ca)
        assert (await ask(source)).text == "token-1"
        assert (await ask(source)).text == "token-1", "it has long to live"
    assert issuer.forms == [
        {"grant_type": ["client_credentials"], "scope": ["kafka read"], "audience": ["dc1"]}
    ]


async def test_a_wrong_secret_is_named_and_not_shown(certificates: Certificates) -> None:
    async with serving_tokens(Issuer(), certificates) as issuer:
        said = await complaint(endpoint(issuer, certificates.ca, "wr0ng"), issuer)
    assert said == f"answers HTTP 401, invalid_client (client {CLIENT_ID!r})"


async def test_a_secret_goes_to_nobody_whose_certificate_is_not_trusted(
    certificates: Certificates,
) -> None:
    async with serving_tokens(Issuer(), certificates) as issuer:
        said = await complaint(endpoint(issuer, certificates.strange_ca), issuer)
    assert said.startswith("its certificate is not trusted: ")
    assert said.endswith(f"_ca: {certificates.strange_ca})"), "the key and the file"
    assert issuer.forms == []


async def test_authorities_that_have_gone_are_named(
    certificates: Certificates, tmp_path: Path
) -> None:
    gone = tmp_path / "gone.pem"
    async with serving_tokens(Issuer(), certificates) as issuer:
        said = await complaint(endpoint(issuer, gone), issuer)
    assert said.startswith("No such file or directory (trusted is ")
    assert said.endswith(f"_ca: {gone})")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "what it answers is not HTTP, or is cut off"),
        (b"HTTP/1.1 302 Found\r\nLocation: https://x/\r\n\r\n", "answers HTTP 302"),
        (b"HTTP/1.1 200 OK\r\n\r\n<html>", "is not JSON"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", "what it answers is not HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 200_000, "answers more than 131072 bytes"),
    ],
)
async def test_rubbish_is_named(certificates: Certificates, reply: bytes, said: str) -> None:
    async with serving_tokens(Issuer(replies_with=reply), certificates) as issuer:
        assert (await complaint(endpoint(issuer, certificates.ca), issuer)).startswith(said)


async def test_an_issuer_that_says_nothing_is_given_up(certificates: Certificates) -> None:
    async with serving_tokens(Issuer(says_nothing=True), certificates) as issuer:
        said = await complaint(endpoint(issuer, certificates.ca, deadline_s=0.5), issuer)
    assert said == "no answer within 0.5 s"


async def test_an_issuer_that_is_away_is_named(certificates: Certificates) -> None:
    async with serving_tokens(Issuer(), certificates) as issuer:
        source = endpoint(issuer, certificates.ca)
    assert await complaint(source, issuer) == "Connection refused"


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("http://issuer/token", "must begin with https://"),
        ("https://user:s3cret@issuer/token", "neither a user nor a fragment"),
        ("https:///token", "is not an address"),
        ("https://issuer/to ken", "is not an address"),
        ("https://issuer:port/token", "Port could not be cast"),
    ],
)
def test_an_address_has_to_be_one(url: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong) as caught:
        parse_https(url)
    assert "s3cret" not in str(caught.value)
