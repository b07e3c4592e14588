"""Kafka's settings of listeners, TLS and SASL: what they come to, and what is refused by name."""

from pathlib import Path

import pytest

from broker.config import BrokerConfig, parse_config
from broker.dynamic_config import DynamicConfig
from broker.listeners import Listener, SecurityProtocol
from broker.security.settings import (
    ServerTls,
    TokenRules,
    initial_scram_users,
    inter_broker_security,
    parse_jaas,
    security_of,
)
from runtime.configuration.properties import Property
from runtime.configuration.reading.mistakes import ConfigurationError
from wire.net.security import Mechanism, Sasl, Security, Tls

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PASSWORD, B = "opensesame", "b"
BOTH = {
    "listeners": "CLIENTS://:9093,BROKERS://127.0.0.1:9094",
    "advertised.listeners": "CLIENTS://c.example:19093,BROKERS://127.0.0.1:9094",
    "listener.security.protocol.map": "CLIENTS:SASL_SSL,BROKERS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "ssl.keystore.location": "/k.pem",
    "ssl.key.password": PASSWORD,
    "listener.name.clients.plain.sasl.jaas.config": f'{PLAIN} user_alice="a";',
    "listener.name.brokers.scram-sha-512.sasl.jaas.config": (
        f'{SCRAM} username="broker" password="b" user_broker="b";'
    ),
}


def load(settings: dict[str, str]) -> BrokerConfig:
    given = {"broker.id": "1", "zookeeper.connect": "z:1", **settings}
    properties = [Property(key=key, value=value, place="f:1") for key, value in given.items()]
    return parse_config(properties, file="f")


def test_every_listener_has_its_own_protocol_and_users() -> None:
    config = load(BOTH)
    clients, brokers = config.listeners
    assert clients == Listener(
        name="CLIENTS", host="", port=9093, protocol=SecurityProtocol.SASL_SSL
    )
    asked = security_of(config, clients)
    assert asked.tls == ServerTls(keystore=Path("/k.pem"), key_password=PASSWORD)
    assert asked.logins is not None
    assert asked.logins[Mechanism.PLAIN].users == {"alice": "a"}
    assert asked.logins[Mechanism.SCRAM_SHA_512].users == {}
    assert config.inter_broker_listener == brokers
    assert security_of(config, brokers).tls is None
    sasl = Sasl(mechanism=Mechanism.SCRAM_SHA_512, username="broker", password=B)
    assert inter_broker_security(config) == Security(sasl=sasl)
    assert list(initial_scram_users(config)) == [(Mechanism.SCRAM_SHA_512, "broker", "b")]
    told = config.advertised(clients)
    assert told is not None
    assert str(told) == "CLIENTS://c.example:19093"


def test_brokers_verify_each_other_by_the_truststore() -> None:
    settings = {
        "listeners": "SSL://h:1",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.location": "/k.pem",
        "ssl.truststore.location": "/t.pem",
        "ssl.client.auth": "required",
        "ssl.endpoint.identification.algorithm": "",
    }
    config = load(settings)
    assert inter_broker_security(config).tls == Tls(
        ca=Path("/t.pem"), certificate=Path("/k.pem"), checks_hostname=False
    )
    tls = security_of(config, config.listeners[0]).tls
    assert tls is not None
    assert tls.client_auth == "required"


def test_beside_sasl_certificates_are_asked_for_only_by_the_listeners_own_word() -> None:
    settings = {**BOTH, "ssl.client.auth": "required", "ssl.truststore.location": "/t.pem"}
    config = load(settings)
    tls = security_of(config, config.listeners[0]).tls
    assert tls is not None
    assert tls.client_auth == "none"
    config = load({**settings, "listener.name.clients.ssl.client.auth": "requested"})
    tls = security_of(config, config.listeners[0]).tls
    assert tls is not None
    assert tls.client_auth == "requested"


def test_one_jaas_line_may_be_for_all() -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://h:1",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} username="b" password="b" user_b="b" user_a=\'x y;\';',
    }
    config = load(settings)
    logins = security_of(config, config.listeners[0]).logins
    assert logins is not None
    assert logins[Mechanism.PLAIN].users == {"b": "b", "a": "x y;"}
    assert inter_broker_security(config).protocol == "SASL_PLAINTEXT"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"listener.security.protocol.map": "CLIENTS:TLS"},
            "f:1: listener.security.protocol.map: 'CLIENTS:TLS' is not of the form",
        ),
        (
            {"listener.security.protocol.map": "CLIENTS:SSL"},
            "f:1: listeners: BROKERS://127.0.0.1:9094: listener.security.protocol.map does not",
        ),
        (
            {"inter.broker.listener.name": "OTHERS"},
            "f:1: inter.broker.listener.name: OTHERS is no name of a listener",
        ),
        (
            {"advertised.listeners": "CLIENTS://h:1"},
            "f:1: advertised.listeners: BROKERS is missing: brokers use it",
        ),
        (
            {"ssl.client.auth": "maybe"},
            "f:1: ssl.client.auth: 'maybe' is none of none, requested, required",
        ),
        (
            {"listener.name.clients.ssl.client.auth": "required"},
            "f: ssl.truststore.location: missing: CLIENTS://:9093 asks for its clients'",
        ),
        ({"ssl.keystore.type": "JKS"}, "f:1: ssl.keystore.type: 'JKS' is none of PEM"),
        (
            {"sasl.enabled.mechanisms": "GSSAPI"},
            "f:1: sasl.enabled.mechanisms: 'GSSAPI': only PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        (
            {"sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER"},
            "f: sasl.oauthbearer.jwks.endpoint.url: missing: CLIENTS://:9093 takes tokens",
        ),
        (
            {"sasl.oauthbearer.jwks.endpoint.url": "https://issuer/jwks"},
            "f:1: sasl.oauthbearer.jwks.endpoint.url: 'https://issuer/jwks' is not of the form",
        ),
        (
            {"sasl.mechanism.inter.broker.protocol": "OAUTHBEARER"},
            "f:1: sasl.mechanism.inter.broker.protocol: 'OAUTHBEARER' is none of PLAIN",
        ),
        (
            {"sasl.enabled.mechanisms": ""},
            "f:1: sasl.enabled.mechanisms: missing: CLIENTS://:9093 asks for SASL",
        ),
        (
            {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"},
            "f:1: sasl.mechanism.inter.broker.protocol: SCRAM-SHA-256 is not enabled on BROKERS",
        ),
        (
            {"sasl.mechanism.inter.broker.protocol": "PLAIN"},
            "f: listener.name.brokers.plain.sasl.jaas.config: needs username and password",
        ),
        (
            {"listener.name.others.ssl.client.auth": "none"},
            "f:1: listener.name.others.ssl.client.auth: no listener is called OTHERS",
        ),
        (
            {"listener.name.clients.log.dirs": "/x"},
            "f:1: listener.name.clients.log.dirs: unknown setting",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(changed: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load({**BOTH, **changed})
    assert str(caught.value).startswith(said)


def test_a_listener_may_have_rules_of_its_own_for_tokens() -> None:
    of_clients = "listener.name.clients.sasl.oauthbearer"
    config = load(
        {
            **BOTH,
            "sasl.oauthbearer.jwks.endpoint.url": "file:///etc/kafka/jw%20ks.json",
            "listener.name.clients.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{of_clients}.expected.audience": "kafka, dc1",
            f"{of_clients}.expected.issuer": "https://issuer",
        }
    )
    [tokens] = [found for one in config.listeners if (found := security_of(config, one).tokens)]
    assert tokens == TokenRules(
        jwks=Path("/etc/kafka/jw ks.json"),
        audiences=("kafka", "dc1"),
        issuer="https://issuer",
        principal_claim="sub",
        clock_skew_s=30,
    )


def test_plaintext_between_brokers_has_to_be_possible() -> None:
    settings = {"listeners": "SSL://h:1", "ssl.keystore.location": "/k.pem"}
    with pytest.raises(ConfigurationError, match="no listener speaks PLAINTEXT"):
        load(settings)


@pytest.mark.parametrize(
    "line",
    [
        "",
        f'{PLAIN} user_a="secret"',
        f'{PLAIN} user_a="secret;',
        'com.example.Module required user_a="secret";',
        'org.apache.kafka.common.security.plain.PlainLoginModule user_a="secret";',
    ],
)
def test_a_wrong_jaas_line_is_not_quoted(line: str) -> None:
    with pytest.raises(ValueError, match="is ") as caught:
        parse_jaas(line)
    assert "secret" not in str(caught.value)


def test_nobody_is_shown_a_secret() -> None:
    config = load(BOTH)
    shown = repr(config.sasl_jaas_config) + repr(config.ssl_key_password)
    shown += repr([security_of(config, one) for one in config.listeners])
    shown += repr(DynamicConfig(config).describe_broker(config))
    assert PASSWORD not in shown
    assert "'a'" not in shown
