"""What an application hears of a login that a site refuses: the key and the file, and no secret.

librdkafka is real here; the site is a fake broker.
"""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

import pytest
import trio
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from failover.client import producer as producer_module
from failover.client import site_login, site_reader
from failover.client.faults import NOT_LET_IN, TLS_FAILED
from failover.client.producer import SiteProducer
from failover.client.site_login import LoginUnusable, SiteLogin
from failover.client.site_reader import open_reader
from runtime.configuration.config import ClusterConfig, Configuration, load
from runtime.tokens import held_token
from runtime.tokens.token_command import TokenCommand
from tests.dc_yaml import dc_yaml
from tests.doubles.certificates import Certificates
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.sasl_broker import SaslScripts
from tests.doubles.tls_broker import broker_behind
from tests.failover.client.watching import Watch
from wire.net import backoff
from wire.net.client_settings import Growing
from wire.net.security import BearerSasl
from wire.topic_partition import TopicPartition

SECRET, RIGHT = "s3cret-0ne", "right"
SITES: Final = ("dc1", "dc2")
HEARD_WITHIN_S: Final = 10.0
BY_PASSWORD: Final = {"mechanism": "PLAIN", "username": "app", "password_file": "secret"}
BY_TOKEN_FILE: Final = {"mechanism": "OAUTHBEARER", "token_file": "secret"}
QUIET: Final = {"log_level": 0}
"""librdkafka's own log."""


def configured(folder: Path, site: str, section: dict[str, Any]) -> Configuration:
    file = folder / "dc.yaml"
    other = "dc2" if site == "dc1" else "dc1"
    sites: dict[str, Any] = {site: {"bootstrap": "127.0.0.1:1", **section}, other: {}}
    sites[other] = {"bootstrap": "127.0.0.1:1"}
    file.write_text(dc_yaml(**sites))
    return load(file)


def by_sasl(sasl: dict[str, Any]) -> dict[str, Any]:
    return {"security_protocol": "SASL_PLAINTEXT", "sasl": sasl}


def at(cluster: ClusterConfig, address: tuple[str, int]) -> ClusterConfig:
    return replace(cluster, bootstrap=(address,))


def secret_file(folder: Path, text: str = SECRET) -> Path:
    file = folder / "secret"
    file.write_text(text)
    file.chmod(0o600)
    return file


def make_consumer(settings: dict[str, Any]) -> Consumer:
    consumer = Consumer({**settings, "group.id": "g"})
    consumer.subscribe(["orders"])
    return consumer


MAKERS: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "producer": Producer,
    "consumer": make_consumer,
}


async def first_refusal(
    cluster: ClusterConfig, make: Callable[[dict[str, Any]], Any] = Producer
) -> KafkaError:
    """Return what the application's own `error_cb` hears first of a refusal."""
    heard: list[KafkaError] = []
    login = SiteLogin(cluster, {**QUIET, "error_cb": heard.append})
    client = login.open(make)
    deadline = monotonic() + HEARD_WITHIN_S

    def poll() -> KafkaError:
        while monotonic() < deadline:
            client.poll(0.05)
            for error in heard:
                if error.code() in {*NOT_LET_IN, TLS_FAILED}:
                    return error
        raise AssertionError(f"no refusal among {heard}")

    return await trio.to_thread.run_sync(poll)


def assert_hidden(*shown: object) -> None:
    for one in shown:
        assert "s3cret" not in f"{one} {one!r}"


# What the site refuses


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("site", SITES)
async def test_a_wrong_password_is_named_with_its_file_to_log_and_application(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, site: str, maker: str
) -> None:
    file = secret_file(tmp_path)
    cluster = configured(tmp_path, site, by_sasl(BY_PASSWORD)).clusters[site]
    async with run_fake_cluster() as fake:
        SaslScripts(username="app", password=RIGHT).install(fake.brokers[0])
        error = await first_refusal(at(cluster, fake.bootstrap[0]), MAKERS[maker])
    said = f"(user 'app' of clusters.{site}.sasl with the password in {file})"
    assert str(error.str()).endswith(said)
    [line] = caplog.messages
    assert line.startswith(f"{site} does not let us in: ")
    assert line.endswith(said)
    assert_hidden(error, caplog.text)


@pytest.mark.parametrize("site", SITES)
async def test_a_token_that_is_refused_is_named_with_its_file(tmp_path: Path, site: str) -> None:
    file = secret_file(tmp_path)
    cluster = configured(tmp_path, site, by_sasl(BY_TOKEN_FILE)).clusters[site]
    async with run_fake_cluster() as fake:
        SaslScripts(tokens={RIGHT}).install(fake.brokers[0])
        error = await first_refusal(at(cluster, fake.bootstrap[0]))
    assert str(error.str()).endswith(f"(a token of clusters.{site}.sasl.token_file: {file})")
    assert_hidden(error)


async def test_credentials_of_the_applications_own_are_not_taken_for_the_files(
    tmp_path: Path,
) -> None:
    secret_file(tmp_path)
    cluster = configured(tmp_path, "dc1", by_sasl(BY_PASSWORD)).clusters["dc1"]
    async with run_fake_cluster() as fake:
        SaslScripts(username="app", password=RIGHT).install(fake.brokers[0])
        own = {**QUIET, "sasl.username": "mine", "sasl.password": SECRET}
        login = SiteLogin(at(cluster, fake.bootstrap[0]), own)
        client = login.open(Producer)

        def poll() -> None:
            deadline = monotonic() + HEARD_WITHIN_S
            while not login.refusal and monotonic() < deadline:
                client.poll(0.05)

        await trio.to_thread.run_sync(poll)
    assert login.refusal.endswith("(of the application's own settings)")
    assert_hidden(login.refusal)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def server_context(certificates: Certificates, *, wants_client: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.broker, certificates.key(certificates.broker))
    if wants_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificates.ca)
    return context


@pytest.mark.parametrize("site", SITES)
async def test_authorities_that_do_not_fit_are_named_with_key_and_file(
    tmp_path: Path, certificates: Certificates, site: str
) -> None:
    ca = certificates.strange_ca
    section = {"security_protocol": "SSL", "ssl": {"ca": str(ca)}}
    cluster = configured(tmp_path, site, section).clusters[site]
    async with broker_behind(server_context(certificates)) as broker:
        error = await first_refusal(at(cluster, broker.address))
    assert error.code() == TLS_FAILED
    assert f"trusted is clusters.{site}.ssl.ca: {ca}; shown is no certificate" in str(error.str())


# What cannot be shown at all


def command(folder: Path, script: str) -> dict[str, Any]:
    program = folder / "get-token"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return by_sasl({"mechanism": "OAUTHBEARER", "token_command": [str(program), SECRET]})


def hurried(cluster: ClusterConfig) -> ClusterConfig:
    """Give a command two seconds."""
    sasl = cluster.security.sasl
    assert isinstance(sasl, BearerSasl)
    assert isinstance(sasl.source, TokenCommand)
    source = replace(sasl.source, deadline_s=2.0)
    return replace(cluster, security=replace(cluster.security, sasl=BearerSasl(source=source)))


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (f"echo {SECRET}; sleep 60", "did not end within 2 s, and was killed"),
        (f"echo '<html>{SECRET}</html>'", "is no bearer token: "),
        (f"echo {SECRET} >&2; exit 3", "ended with status 3; run it by hand to see why"),
    ],
    ids=["hangs", "rubbish", "fails"],
)
@pytest.mark.parametrize("site", SITES)
def test_a_command_without_a_token_is_named_at_once(
    tmp_path: Path, site: str, script: str, why: str
) -> None:
    cluster = configured(tmp_path, site, command(tmp_path, script)).clusters[site]
    login, started = SiteLogin(hurried(cluster), QUIET), monotonic()
    with pytest.raises(LoginUnusable) as caught:
        login.open(Producer)
    assert monotonic() - started < 8, "librdkafka would have waited for ten seconds"
    said = f"clusters.{site}.sasl.token_command: {tmp_path / 'get-token'}: {why}"
    assert str(caught.value).startswith(said)
    assert_hidden(caught.value)


async def test_a_token_that_cannot_be_renewed_is_named_while_the_client_runs(
    tmp_path: Path,
) -> None:
    put = partial(command, tmp_path)
    section = put('echo \'{"access_token": "right", "expires_in": 2}\'')
    cluster = configured(tmp_path, "dc2", section).clusters["dc2"]
    async with run_fake_cluster() as fake:
        SaslScripts(tokens={RIGHT}).install(fake.brokers[0])
        heard: list[KafkaError] = []
        own = {**QUIET, "error_cb": heard.append}
        login = SiteLogin(at(cluster, fake.bootstrap[0]), own)
        client = login.open(Producer)
        put(f"echo {SECRET}; exit 4")

        def poll() -> None:
            deadline = monotonic() + HEARD_WITHIN_S
            while not login.refusal and monotonic() < deadline:
                client.poll(0.05)

        await trio.to_thread.run_sync(poll)
    assert "get-token: ended with status 4; run it by hand" in login.refusal
    assert str(heard[-1].str()) == login.refusal
    assert_hidden(login.refusal)


@pytest.mark.parametrize("site", SITES)
def test_a_file_of_authorities_that_has_gone_is_named(
    tmp_path: Path, certificates: Certificates, site: str
) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes(certificates.ca.read_bytes())
    section = {"security_protocol": "SSL", "ssl": {"ca": str(ca)}}
    login = SiteLogin(configured(tmp_path, site, section).clusters[site], QUIET)
    ca.unlink()
    with pytest.raises(LoginUnusable) as caught:
        login.open(Producer)
    said = f"No such file or directory (trusted is clusters.{site}.ssl.ca: {ca}; shown is no cert"
    assert str(caught.value).startswith(said)


def test_a_setting_that_is_of_no_use_is_no_refusal(tmp_path: Path) -> None:
    cluster = configured(tmp_path, "dc1", {}).clusters["dc1"]
    with pytest.raises(KafkaException):
        SiteLogin(cluster, {"no.such.setting": 1}).open(Producer)


async def test_a_reader_of_a_site_says_which_login_was_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_reader, "READ_TIMEOUT_S", 1.0)
    file = secret_file(tmp_path)
    cluster = configured(tmp_path, "dc2", by_sasl(BY_PASSWORD)).clusters["dc2"]
    async with run_fake_cluster() as fake:
        SaslScripts(username="app", password=RIGHT).install(fake.brokers[0])

        def read() -> None:
            with open_reader(at(cluster, fake.bootstrap[0]), QUIET) as reader:
                reader.end(TopicPartition("orders", 0))

        with pytest.raises(LoginUnusable, match=rf"password in {file}\)$"):
            await trio.to_thread.run_sync(read)


def test_the_log_has_the_same_refusal_once_a_minute_and_another_one_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret_file(tmp_path)
    now = [100.0]
    monkeypatch.setattr(site_login, "monotonic", lambda: now[0])
    cluster = configured(tmp_path, "dc1", by_sasl(BY_PASSWORD)).clusters["dc1"]
    heard: list[KafkaError] = []
    login = SiteLogin(cluster, {"error_cb": heard.append})
    of_password, of_tls = KafkaError(next(iter(NOT_LET_IN)), "no"), KafkaError(TLS_FAILED, "no")
    for passed_s, error in ((0, of_password), (30, of_password), (31, of_password), (1, of_tls)):
        now[0] += passed_s
        login.hear(error)
    assert len(caplog.messages) == 3
    assert len(heard) == 4, "the application hears of each"
    login.hear(KafkaError(KafkaError.BROKER_NOT_AVAILABLE, "as it was"))
    assert (heard[-1].str(), len(caplog.messages)) == ("as it was", 3)


def test_a_connection_that_ends_within_a_login_is_no_refusal(tmp_path: Path) -> None:
    """As librdkafka 2.16 tells of one, by the same code."""
    secret_file(tmp_path)
    cluster = configured(tmp_path, "dc1", by_sasl(BY_TOKEN_FILE)).clusters["dc1"]
    heard: list[KafkaError] = []
    login = SiteLogin(cluster, {"error_cb": heard.append})
    said = (
        "127.0.0.1:9: SASL OAUTHBEARER mechanism handshake failed: Local: Broker transport failure:"
        " broker's supported mechanisms: (n/a) (after 0ms in state DOWN)"
    )
    login.hear(KafkaError(next(iter(NOT_LET_IN)), said))
    assert (login.refusal, [error.str() for error in heard]) == ("", [said])


# What an application does meanwhile


@contextmanager
def hasty() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(backoff, "REFUSED", Growing(first_ms=10, longest_ms=10))
        patched.setattr(held_token, "FAILURE_KEPT_MS", 0)
        patched.setattr(producer_module, "ActiveSiteWatch", Watch)
        yield


def is_sending(producer: SiteProducer) -> bool:
    return producer._sending is not None


def test_a_producer_waits_for_a_token_that_cannot_be_had_yet(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = secret_file(tmp_path)
    configuration = configured(tmp_path, "dc1", by_sasl(BY_TOKEN_FILE))
    file.unlink()
    with hasty():
        producer = SiteProducer(configuration, producer_config=QUIET)
        assert producer.poll(0.05) == 0
        said = f"clusters.dc1.sasl.token_file: {file}: No such file or directory"
        assert caplog.messages[0] == f"cannot go on at dc1 yet: {said}"
        assert not is_sending(producer)
        file.write_text(RIGHT)
        producer.poll(0.05)
        assert is_sending(producer)
        producer.close(0)
