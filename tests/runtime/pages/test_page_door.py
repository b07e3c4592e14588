"""The pages of a program that asks its readers who they are."""

import base64
import http.client
import re
import ssl
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from runtime.pages.browsing import PageAnswer, PageRequest
from runtime.pages.metrics import serve_metrics
from runtime.pages.page_door import (
    UNGUARDED,
    PageDoor,
    PageTls,
    PageUser,
    is_loopback,
    reader_context,
)
from tests.doubles.certificates import Certificates
from wire.net.secret_file import FileSecret

BOTH = PageDoor(token="t0ken", reader=PageUser(username="ops", password="geheim"))  # noqa: S106
OPS = b"Basic " + base64.b64encode(b"ops:geheim")


@given(st.binary(max_size=60))
def test_only_exactly_what_is_asked_for_is_let_in(shown: bytes) -> None:
    assert UNGUARDED.admits(shown)
    assert BOTH.admits(shown) == (shown in {b"Bearer t0ken", OPS})  # no case but the scheme's


def test_each_of_token_and_user_is_enough() -> None:
    assert BOTH.admits(b"Bearer t0ken")
    assert BOTH.admits(OPS)
    assert not replace(BOTH, token=None).admits(b"Bearer t0ken")
    assert not replace(BOTH, reader=None).admits(OPS)


def test_who_is_let_in_is_known_by_name_and_no_secret_is_in_it() -> None:
    assert BOTH.name_of(OPS) == "user 'ops'"
    assert BOTH.name_of(b"Bearer t0ken") == "the holder of the token"
    assert BOTH.name_of(b"Bearer wrong") is None
    assert UNGUARDED.name_of(OPS) is None, "nobody has looked whether it is true"


def test_no_secret_is_shown() -> None:
    assert "t0ken" not in repr(BOTH)
    assert "geheim" not in repr(BOTH)


@pytest.mark.parametrize(
    ("host", "is_only_here"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104
        ("::", False),
        ("10.0.0.1", False),
        ("mirror1.example", False),
    ],
)
def test_only_loopback_is_reached_by_nobody_else(host: str, *, is_only_here: bool) -> None:
    assert is_loopback(host) == is_only_here


async def status() -> tuple[str, bytes]:
    return "application/json", b"{}"


async def who(request: PageRequest) -> PageAnswer | None:
    return PageAnswer(body=request.asker.encode()) if request.path == "/who" else None


async def _get(
    port: int, path: str, shown: str | None = None, context: ssl.SSLContext | None = None
) -> tuple[int, str | None, bytes]:
    def ask() -> tuple[int, str | None, bytes]:
        connection = (
            http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            if context is None
            else http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)
        )
        headers = {} if shown is None else {"Authorization": shown}
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.getheader("WWW-Authenticate"), answer.read()
        finally:
            connection.close()

    return await trio.to_thread.run_sync(ask)


async def _served(nursery: trio.Nursery, door: PageDoor) -> int:
    serve = partial(
        serve_metrics, "127.0.0.1", 0, routes={"/status": status}, door=door, browse=who
    )
    port: int = await nursery.start(serve)
    return port


async def test_without_a_token_there_is_nothing_but_health(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    token = FileSecret(file=file, last_known="first")
    port = await _served(nursery, PageDoor(token=token))
    for path in (
        "/status",
        "/metrics",
        "/",
        "/nothing",
        "/healthy",
        "/health/x",
        "/status?/health/live",
    ):
        for shown in (None, "Bearer wrong", "Bearer ", "Basic first", "Bearer  first"):
            refused, challenge, body = await _get(port, path, shown)
            assert (refused, challenge) == (401, 'Bearer, Basic realm="kafka-dr"'), (path, shown)
            assert b"{}" not in body
    assert (await _get(port, "/health/live"))[0] == 200
    assert (await _get(port, "/health/ready"))[0] == 200
    assert (await _get(port, "/status", "Bearer first"))[2] == b"{}"
    assert (await _get(port, "/status", "bearer first"))[2] == b"{}"
    file.write_text("second")
    assert (await _get(port, "/status", "Bearer first"))[0] == 401
    assert (await _get(port, "/status", "Bearer second"))[0] == 200


async def test_pages_are_encrypted_and_clients_show_certificates(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    certificates = Certificates(tmp_path)
    tls = PageTls(
        certificate=certificates.broker,
        key=certificates.key(certificates.broker),
        ca=certificates.ca,
        client_ca=certificates.ca,
    )
    port = await _served(nursery, PageDoor(tls=tls, token="t0ken"))  # noqa: S106
    ours = reader_context(tls)
    assert (await _get(port, "/status", "Bearer t0ken", ours))[2] == b"{}"
    assert (await _get(port, "/status", None, ours))[0] == 401
    asker = (await _get(port, "/who", "Bearer t0ken", ours))[2].decode()
    assert re.fullmatch(r"the holder of the token, certificate '.*CN=.+' from 127\.0\.0\.1", asker)
    nobody = ssl.create_default_context(cafile=certificates.ca)
    for path in ("/status", "/metrics", "/", "/nothing", "/health/x", "/status?/health/live"):
        for shown in (None, "Bearer t0ken"):
            refused, challenge, body = await _get(port, path, shown, nobody)
            assert (refused, challenge) == (403, None), path
            assert b"{}" not in body
    for health in ("/health/live", "/health/ready"):
        assert (await _get(port, health, None, nobody))[0] == 200, "as a kubelet asks"
    expired = ssl.create_default_context(cafile=certificates.ca)
    expired.load_cert_chain(
        certificates.expired_client, certificates.key(certificates.expired_client)
    )
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await _get(port, "/health/live", None, expired)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        await _get(port, "/health/live")
    strange = ssl.create_default_context(cafile=certificates.strange_ca)
    with pytest.raises(ssl.SSLCertVerificationError):
        await _get(port, "/status", None, strange)
    assert (await _get(port, "/status", "Bearer t0ken", ours))[2] == b"{}"


async def test_a_renewed_certificate_is_used_and_a_broken_one_is_not(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    first, second = (Certificates(_made(tmp_path / name)) for name in ("first", "second"))
    tls = PageTls(certificate=first.broker, key=first.key(first.broker), ca=first.ca)
    port = await _served(nursery, PageDoor(tls=tls))
    assert (await _get(port, "/status", None, reader_context(tls)))[0] == 200
    first.broker.write_text("not PEM")
    assert (await _get(port, "/status", None, reader_context(tls)))[0] == 200
    first.key(first.broker).write_bytes(second.key(second.broker).read_bytes())
    first.broker.write_bytes(second.broker.read_bytes())
    with pytest.raises(ssl.SSLCertVerificationError):
        await _get(port, "/status", None, reader_context(tls))
    assert (await _get(port, "/status", None, reader_context(replace(tls, ca=second.ca))))[0] == 200


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
