"""The keys of OAUTHBEARER in the configuration file, and what it complains of."""

import pickle
from pathlib import Path

import pytest

from runtime.configuration.config import ConfigurationError
from runtime.tokens.https_address import HttpsAddress
from runtime.tokens.token_command import TokenCommand
from runtime.tokens.token_endpoint import TokenEndpoint
from runtime.tokens.token_file import TokenFile
from tests.runtime.cluster_section import cluster
from wire.net.security import BearerSasl, TokenSource

SECRET = "s3cret"  # noqa: S105 - of a test
ENDPOINT = "token_endpoint: 'https://issuer/token', client_id: m"


def source(folder: Path, keys: str) -> TokenSource:
    sasl = f"sasl: {{mechanism: OAUTHBEARER, {keys}}}"
    found = cluster(folder, "security_protocol: SASL_PLAINTEXT", sasl).security.sasl
    assert isinstance(found, BearerSasl)
    assert SECRET not in repr(found)
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - our own
    return found.source


def test_each_source_is_read(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    key = "clusters.dc1.sasl"
    assert source(tmp_path, "token_file: token") == TokenFile(
        key=f"{key}.token_file", file=tmp_path / "token"
    )
    assert source(tmp_path, "token_command: [aws, s3cret]") == TokenCommand(
        key=f"{key}.token_command", command=("aws", SECRET)
    )
    assert source(tmp_path, f"{ENDPOINT}, client_secret: {SECRET}, scope: a b") == TokenEndpoint(
        key=f"{key}.token_endpoint",
        address=HttpsAddress(host="issuer", port=443, target="/token"),
        client_id="m",
        client_secret=SECRET,
        scope="a b",
    )


def test_librdkafka_gets_its_tokens_from_the_same_source(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    lines = (
        "security_protocol: SASL_PLAINTEXT",
        "sasl: {mechanism: OAUTHBEARER, token_file: token}",
    )
    settings = cluster(tmp_path, *lines).client_settings()
    text, ends_s = settings.pop("oauth_cb")("")
    assert text == "t"
    assert ends_s > 1_700_000_000
    assert settings == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
    }
    own = cluster(tmp_path, *lines).client_settings({"sasl.mechanism": "PLAIN"})
    assert "oauth_cb" not in own, "the application logs in by itself"


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ("token_command: []", r"sasl\.token_command: names no command"),
        ("scope: s", r"sasl\.mechanism: OAUTHBEARER needs one of token_file, token_command, tok"),
        ("token_command: [a], scope: s", r"sasl\.scope: is of no use without token_endpoint"),
        (f"token_command: [a], {ENDPOINT}", r"token_endpoint: stands beside 'token_command'"),
        (ENDPOINT, r"sasl\.client_secret: is missing"),
        ("token_endpoint: 'https://issuer', client_secret: x", r"sasl\.client_id: is missing"),
        (
            "token_endpoint: 'http://issuer', client_id: m, client_secret: x",
            r"sasl\.token_endpoint: must begin with https",
        ),
        (
            f"{ENDPOINT}, client_secret: x, token_endpoint_ca: dc.yaml",
            r"sasl\.token_endpoint_ca: cannot be used: ",
        ),
        ("token_command: [a], username: u", r"sasl\.username: unknown key"),
        ("token_command: [a], password: s3cret", r"sasl\.password: unknown key"),
    ],
)
def test_a_complaint_names_the_key_and_shows_no_secret(
    tmp_path: Path, keys: str, complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        source(tmp_path, keys)
    assert SECRET not in str(caught.value)
