"""All bad logins: each is named by key and file, never shown, tried again, and disturbs no other.

Files that cannot be used are met at the start and while a program runs, in each place that takes
one. What the other side refuses, and tokens that cannot be had, are met by a cluster's connections;
what the witness and the pages do is at the end.
"""

import base64
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from kazoo.exceptions import AuthFailedError, ConnectionDropped
from kazoo.protocol.connection import ConnectionHandler
from trio.testing import MockClock

from mirror.commands.status import NobodyAnswers, _ask
from runtime.configuration.config import Configuration, ConfigurationError, load
from runtime.coordination.kazoo_client import make_client
from runtime.coordination.witness import WorkerInfo
from runtime.coordination.zookeeper_access import Login, LoginMechanism, ZooKeeperAccess
from runtime.pages.metrics import serve_metrics
from runtime.pages.page_door import PageDoor
from runtime.tokens import held_token
from runtime.tokens.token_command import TokenCommand
from runtime.tokens.token_endpoint import TokenEndpoint
from tests.dc_yaml import dc_yaml
from tests.doubles.certificates import Certificates
from tests.doubles.issuer import CLIENT_ID, CLIENT_SECRET, Issuer, serving_tokens
from tests.doubles.sasl_broker import SaslScripts
from tests.mirror.building import CONFIG as FLOW
from tests.wire.net.sasl_pool import PLACE, pool_with
from wire.net import AuthenticationFailed
from wire.net.backoff import REFUSED
from wire.net.secret_file import MOST_BYTES, FileSecret
from wire.net.security import AnySasl, BearerSasl, Mechanism, Sasl, reveal

RIGHT, SECRET, OF_DC2 = "right", "s3cret-0ne", "s3cret-of-dc2"
HIDDEN: Final = ("s3cret", CLIENT_SECRET)
BY_PASSWORD: Final = {"mechanism": "PLAIN", "username": "mirror", "password_file": "secret"}
BY_TOKEN_FILE: Final = {"mechanism": "OAUTHBEARER", "token_file": "secret"}
BY_CLIENT_SECRET: Final = {
    "mechanism": "OAUTHBEARER",
    "token_endpoint": "https://issuer/token",
    "client_id": "m",
    "client_secret_file": "secret",
}
BY_USER: Final = r"user 'mirror' of clusters\.dc1\.sasl with the password in /.*/secret"


def configured(
    folder: Path, *, sasl: dict[str, Any] | None = None, **sections: Any
) -> Configuration:
    dc1: dict[str, Any] = {"bootstrap": "127.0.0.1:1"}
    if sasl is not None:
        dc1 |= {"security_protocol": "SASL_PLAINTEXT", "sasl": sasl}
    file = folder / "dc.yaml"
    file.write_text(dc_yaml(dc1=dc1, **sections))
    return load(file)


def login_of(configuration: Configuration) -> AnySasl:
    sasl = configuration.clusters["dc1"].security.sasl
    assert sasl is not None
    return sasl


def assert_hidden(*shown: object) -> None:
    for one in shown:
        assert not any(secret in f"{one} {one!r}" for secret in HIDDEN), one


# Files: each place that takes one


@dataclass(frozen=True, kw_only=True)
class SecretSetting:
    """A setting that names a file with a secret, and how what it holds is come by."""

    key: str
    sections: dict[str, Any]
    secret: Callable[[Configuration], Any]


def _client_secret(configuration: Configuration) -> Any:
    sasl = login_of(configuration)
    assert isinstance(sasl, BearerSasl)
    assert isinstance(sasl.source, TokenEndpoint)
    return sasl.source.client_secret


def _password(configuration: Configuration) -> Any:
    sasl = login_of(configuration)
    assert isinstance(sasl, Sasl)
    return sasl.password


def _of_witness(configuration: Configuration) -> Any:
    login = configuration.coordination.access.login
    assert login is not None
    return login.password


def _of_reader(configuration: Configuration) -> Any:
    reader = configuration.metrics.door.reader
    assert reader is not None
    return reader.password


PLACES: Final = (
    SecretSetting(
        key="clusters.dc1.sasl.password_file", sections={"sasl": BY_PASSWORD}, secret=_password
    ),
    SecretSetting(
        key="clusters.dc1.sasl.client_secret_file",
        sections={"sasl": BY_CLIENT_SECRET},
        secret=_client_secret,
    ),
    SecretSetting(
        key="coordination.auth.password_file",
        sections={"coordination": {"auth": {"username": "dr", "password_file": "secret"}}},
        secret=_of_witness,
    ),
    SecretSetting(
        key="metrics.token_file",
        sections={"metrics": {"token_file": "secret"}},
        secret=lambda configuration: configuration.metrics.door.token,
    ),
    SecretSetting(
        key="metrics.password_file",
        sections={"metrics": {"username": "ops", "password_file": "secret"}},
        secret=_of_reader,
    ),
)
READ_LATER: Final = SecretSetting(
    key="clusters.dc1.sasl.token_file",
    sections={"sasl": BY_TOKEN_FILE},
    secret=lambda configuration: configuration,  # of no use: tokens are read at each login
)
FILES: Final[dict[str, tuple[Callable[[Path], object], str]]] = {
    "away": (lambda _: None, "No such file or directory"),
    "folder": (lambda file: file.mkdir(), "is a folder"),
    "empty": (lambda file: file.write_bytes(b""), "is empty"),
    "no text": (lambda file: file.write_bytes(b"s3cret\xff"), "is not UTF-8 text"),
    "huge": (lambda file: file.write_bytes(b"s3cret" * MOST_BYTES), "is larger than 65536 bytes"),
}
BAD_FILES: Final = [
    *((place, what) for place in PLACES for what in FILES),
    *((READ_LATER, what) for what in ("away", "folder")),
]


def _name(value: object) -> str | None:
    return value.key if isinstance(value, SecretSetting) else None


@pytest.mark.parametrize(("place", "what"), BAD_FILES, ids=_name)
def test_a_file_that_cannot_be_used_is_named_with_its_key_at_the_start(
    tmp_path: Path, place: SecretSetting, what: str
) -> None:
    file = tmp_path / "secret"
    make, why = FILES[what]
    make(file)
    with pytest.raises(ConfigurationError) as caught:
        configured(tmp_path, **place.sections)
    assert str(caught.value).endswith(f"{place.key}: {file}: {why}")
    assert_hidden(caught.value)


@pytest.mark.parametrize("place", [*PLACES, READ_LATER], ids=_name)
def test_a_file_that_every_user_may_read_is_taken_and_the_log_names_it(
    tmp_path: Path, place: SecretSetting, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    for mode, lines in ((0o640, 0), (0o644, 1)):
        file.chmod(mode)
        configured(tmp_path, **place.sections)
        assert len(caplog.messages) == lines
    assert f"{place.key}: {file}: every user of this machine may read it" in caplog.text
    assert_hidden(caplog.text)


@pytest.mark.parametrize("place", PLACES, ids=_name)
def test_a_file_that_is_gone_while_we_run_is_named_once_and_its_last_secret_holds(
    tmp_path: Path, place: SecretSetting, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    file.chmod(0o600)
    secret = place.secret(configured(tmp_path, **place.sections))
    file.unlink()
    with caplog.at_level(logging.WARNING):
        assert [reveal(secret), reveal(secret)] == [SECRET, SECRET]
    assert caplog.messages == [
        f"{place.key}: {file}: No such file or directory; what it held last is used"
    ]
    file.write_text("another")
    assert reveal(secret) == "another"
    assert_hidden(secret, caplog.text)


# Logins at a cluster


@dataclass
class Attempt:
    """A login that goes wrong until `mend`, and how often it was really tried."""

    sasl: AnySasl
    scripts: SaslScripts
    mend: Callable[[], object]


def _by_password(folder: Path, held: str, mechanism: str = "PLAIN") -> Attempt:
    """The file holds another password than the broker knows."""
    file = folder / "secret"
    file.write_text(held)
    sasl = login_of(configured(folder, sasl={**BY_PASSWORD, "mechanism": mechanism}))
    return Attempt(sasl, SaslScripts(password=RIGHT), lambda: file.write_text(RIGHT))


def _revoked(folder: Path) -> Attempt:
    """The password is right, and the broker knows the user no more."""
    attempt = _by_password(folder, SECRET)
    attempt.scripts.password, attempt.scripts.username = SECRET, "nobody"
    attempt.mend = lambda: setattr(attempt.scripts, "username", "mirror")
    return attempt


def _file_gone(folder: Path) -> Attempt:
    """The file is gone, and the broker has another password since."""
    attempt = _by_password(folder, SECRET)
    (folder / "secret").unlink()
    return attempt


def _jwt(ends_s: int) -> str:
    body = base64.urlsafe_b64encode(json.dumps({"exp": ends_s, "sub": SECRET}).encode())
    return f"s3cret.{body.rstrip(b'=').decode()}.x"


def _token_file(text: str | None) -> Callable[[Path], Attempt]:
    def make(folder: Path) -> Attempt:
        file = folder / "secret"
        file.write_text(RIGHT)
        sasl = login_of(configured(folder, sasl=BY_TOKEN_FILE))
        file.unlink() if text is None else file.write_text(text)
        return Attempt(sasl, SaslScripts(tokens={RIGHT}), lambda: file.write_text(RIGHT))

    return make


def _command(script: str, deadline_s: float = 30.0) -> Callable[[Path], Attempt]:
    """The command is a file, so that it can be mended."""

    def make(folder: Path) -> Attempt:
        program = folder / "get-token"

        def put(lines: str) -> None:
            program.write_text(f"#!/bin/sh\n{lines}\n")
            program.chmod(0o700)

        put(script)
        command = {"mechanism": "OAUTHBEARER", "token_command": [str(program), SECRET]}
        sasl = login_of(configured(folder, sasl=command))
        assert isinstance(sasl, BearerSasl)
        assert isinstance(sasl.source, TokenCommand)
        sasl = BearerSasl(source=replace(sasl.source, deadline_s=deadline_s))
        return Attempt(sasl, SaslScripts(tokens={RIGHT}), lambda: put(f"echo {RIGHT}"))

    return make


OF_COMMAND: Final = r"clusters\.dc1\.sasl\.token_command: /.*/get-token: "
OF_FILE: Final = r"clusters\.dc1\.sasl\.token_file: /.*/secret"
LOGINS: Final[dict[str, tuple[Callable[[Path], Attempt], str]]] = {
    "a wrong password": (lambda folder: _by_password(folder, SECRET), rf"\({BY_USER}\)$"),
    "a wrong password, by SCRAM-SHA-256": (
        lambda folder: _by_password(folder, SECRET, "SCRAM-SHA-256"),
        rf"\({BY_USER}\)$",
    ),
    "a wrong password, by SCRAM-SHA-512": (
        lambda folder: _by_password(folder, SECRET, "SCRAM-SHA-512"),
        rf"\({BY_USER}\)$",
    ),
    "the password of the other cluster": (
        lambda folder: _by_password(folder, OF_DC2),
        rf"\({BY_USER}\)$",
    ),
    "a revoked user": (_revoked, rf"\({BY_USER}\)$"),
    "a password's file that is gone": (_file_gone, rf"\({BY_USER}\)$"),
    "an expired token": (_token_file(_jwt(1_000)), rf"{OF_FILE}: the token ended \d+ s ago$"),
    "a revoked token": (_token_file(SECRET), rf"\(a token of {OF_FILE}\)$"),
    "the token of the other cluster": (_token_file(OF_DC2), rf"\(a token of {OF_FILE}\)$"),
    "a token's file with rubbish": (
        _token_file(f"<html>{SECRET}</html>"),
        rf"{OF_FILE}: is no bearer token: ",
    ),
    "an empty token's file": (_token_file(""), rf"{OF_FILE}: holds no token$"),
    "a token's file that is gone": (_token_file(None), rf"{OF_FILE}: No such file or directory"),
    "a command that hangs": (
        _command(f"echo {SECRET}; sleep 60", deadline_s=2.0),
        rf"{OF_COMMAND}did not end within 2 s, and was killed$",
    ),
    "a command that prints rubbish": (
        _command(f"echo '<html>{SECRET}</html>'"),
        rf"{OF_COMMAND}is no bearer token: ",
    ),
    "a command that fails": (
        _command(f"echo {SECRET}; echo {SECRET} >&2; exit 3"),
        rf"{OF_COMMAND}ended with status 3; run it by hand to see why$",
    ),
    "a command that prints an expired token": (
        _command(f"echo {_jwt(1_000)}"),
        rf"{OF_COMMAND}the token ended \d+ s ago$",
    ),
}


@pytest.fixture
def _no_failure_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of tokens is the machine's, which no test moves."""
    monkeypatch.setattr(held_token, "FAILURE_KEPT_MS", 0)


async def assert_handled(
    attempt: Attempt, said: str, clock: MockClock, log: pytest.LogCaptureFixture
) -> None:
    """See a login refused and told, left alone for a while, and tried again; others go on."""
    other = Sasl(mechanism=Mechanism.PLAIN, username="mirror", password=RIGHT)
    async with (
        pool_with(attempt.sasl, attempt.scripts) as (pool, _),
        pool_with(other, SaslScripts(password=RIGHT)) as (others, _),
    ):
        shown: list[object] = [attempt.sasl]
        for _ in range(5):  # somebody asks all the time
            with pytest.raises(AuthenticationFailed, match=said) as caught:
                await pool.connection(PLACE)
            shown += [caught.value, caught.value.__cause__]
        assert attempt.scripts.attempts <= 1, "the others heard what the first one was told"
        assert (await others.connection(PLACE)).is_open
        attempt.mend()
        clock.jump(REFUSED.longest_ms / 1_000)
        assert (await pool.connection(PLACE)).is_open
    assert_hidden(*shown, log.text)


@pytest.mark.usefixtures("_no_failure_is_kept")
@pytest.mark.parametrize("what", LOGINS)
async def test_a_bad_login_is_named_and_left_alone_until_it_is_mended(
    tmp_path: Path, mock_clock: MockClock, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    make, said = LOGINS[what]
    await assert_handled(make(tmp_path), said, mock_clock, caplog)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@dataclass(frozen=True, kw_only=True)
class BadIssuer:
    """What an issuer does, or is shown, and what is said of it."""

    said: str
    does: Callable[[Issuer], object] = lambda _: None
    shown: str = CLIENT_SECRET


ISSUERS: Final = {
    "wrong secret": BadIssuer(
        shown=SECRET,
        said=r"answers HTTP 401, invalid_client \(client 'mirror of dc1' with the secret in /.*/s",
    ),
    "rubbish": BadIssuer(
        does=lambda issuer: setattr(issuer, "replies_with", b"HTTP/1.1 200 OK\r\n\r\n<s3cret>"),
        said="is not JSON$",
    ),
    "silence": BadIssuer(
        does=lambda issuer: setattr(issuer, "says_nothing", True), said=r"no answer within 2 s$"
    ),
    "away": BadIssuer(
        does=lambda issuer: setattr(issuer, "replies_with", b"HTTP/1.1 503 x\r\n\r\n"),
        said="answers HTTP 503$",
    ),
}


@pytest.mark.usefixtures("_no_failure_is_kept")
@pytest.mark.parametrize("what", ISSUERS)
async def test_an_issuer_that_gives_no_token_is_named_and_asked_again(
    tmp_path: Path,
    mock_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
    certificates: Certificates,
    what: str,
) -> None:
    bad, file = ISSUERS[what], tmp_path / "secret"
    file.write_text(bad.shown)
    async with serving_tokens(Issuer(), certificates) as issuer:
        section = {
            **BY_CLIENT_SECRET,
            "token_endpoint": issuer.url,
            "token_endpoint_ca": str(certificates.ca),
            "client_id": CLIENT_ID,
        }
        sasl = login_of(configured(tmp_path, sasl=section))
        assert isinstance(sasl, BearerSasl)
        assert isinstance(sasl.source, TokenEndpoint)
        sasl = BearerSasl(source=replace(sasl.source, deadline_s=2.0))
        bad.does(issuer)

        def mend() -> None:
            issuer.replies_with, issuer.says_nothing = None, False
            file.write_text(CLIENT_SECRET)

        attempt = Attempt(sasl, SaslScripts(tokens={"token-1"}), mend)
        said = rf"clusters\.dc1\.sasl\.token_endpoint: https://127\.0\.0\.1:\d+/\S+: {bad.said}"
        await assert_handled(attempt, said, mock_clock, caplog)


# Logins at the witness, and at pages


def test_a_login_that_the_witness_refuses_is_named_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    login = Login(
        mechanism=LoginMechanism.DIGEST_MD5,
        username="dr",
        password=FileSecret(file=file, last_known="", key="coordination.auth.password_file"),
    )
    tried: list[str] = []

    def connect(handler: ConnectionHandler, *_: object) -> tuple[float, float]:
        tried.append(handler.sasl_options["password"])
        if tried[-1] != RIGHT:
            raise AuthFailedError
        return 4_000.0, 1_000.0

    monkeypatch.setattr(ConnectionHandler, "_connect", connect)
    told: list[str] = []
    client = make_client(
        "127.0.0.1:1",
        session_timeout_ms=4_000,
        access=ZooKeeperAccess(login=login),
        on_refused=told.append,
    )
    with pytest.raises(ConnectionDropped) as caught:  # after which kazoo tries again
        client._connection._connect()
    where = f"coordination.auth.password_file: {file}"
    assert told == [f"the login is refused (user 'dr' with the password in {where})"]
    assert_hidden(caught.value, login, *told)
    file.write_text(RIGHT)
    client._connection._connect()
    assert tried == [SECRET, RIGHT]


async def test_pages_that_refuse_us_are_named_with_what_we_show(
    nursery: trio.Nursery, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    ours = PageDoor(token=FileSecret(file=file, last_known="", key="metrics.token_file"))

    async def status() -> tuple[str, bytes]:
        found = {"pid": 1, "started_ms": 5, "flows": [{"flow": FLOW.name}]}
        return "application/json", json.dumps(found).encode()

    serve = partial(serve_metrics, routes={"/status": status}, door=PageDoor(token=RIGHT))
    port = await nursery.start(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{port}/metrics"
    worker = WorkerInfo(host="far", pid=1, metrics_url=url, started_ms=5)
    with pytest.raises(NobodyAnswers, match=rf"refuses .* \(the token in {file}\)") as caught:
        await _ask(worker, FLOW, ours)
    assert_hidden(caught.value, ours, caplog.text)
    file.write_text(RIGHT)
    assert (await _ask(worker, FLOW, ours))["flow"] == FLOW.name
