"""The security of a listener: TLS files and SASL users, from Kafka's settings.

`listener.name.<name>.<setting>` holds for one listener and comes before `<setting>`. Users stand
in Kafka's JAAS lines:

    listener.name.sasl_ssl.plain.sasl.jaas.config=\\
        org.apache.kafka.common.security.plain.PlainLoginModule required \\
        username="broker" password="s1" user_broker="s1" user_alice="s2";

`username` and `password` are what this broker itself logs in with at the others, `user_<name>` the
users that are let in; with SCRAM they are written to ZooKeeper at the start, where it has none.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol

from broker.listeners import Listener
from broker.security.principal_mapping import DEFAULT_RULES, PrincipalRules
from wire.net.scram import HASHES
from wire.net.security import Mechanism, Sasl, Security, Tls
from wire.values import frozen

LISTENER_PREFIX: Final = "listener.name."
JAAS: Final = "sasl.jaas.config"
OF_ONE_LISTENER: Final = frozenset(
    {
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.key.password",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.client.auth",
        "ssl.principal.mapping.rules",
        "ssl.endpoint.identification.algorithm",
        "sasl.enabled.mechanisms",
        "connections.max.reauth.ms",
        "max.connections",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.oauthbearer.clock.skew.seconds",
        JAAS,
    }
)
"""Settings that a listener may have for itself."""

_JAAS_LINE: Final = re.compile(
    r"\s*(?P<module>[\w.]+)\s+required\s*(?P<options>(?:\s+[\w.@=-]+?=(?:\"[^\"]*\"|'[^']*'|[^\s;\"'][^\s;]*))*)\s*;\s*"
)
_OPTION: Final = re.compile(r"([^\s=]+)=(?:\"([^\"]*)\"|'([^']*)'|(\S+))")
_MODULES: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule",
    "org.apache.kafka.common.security.scram.ScramLoginModule",
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
)
_USER: Final = "user_"


class BadSecurity(ValueError):
    """Settings that cannot be served; `key` is the one to look at."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


@frozen(kw_only=False)
class Secret:
    """A setting that nobody is shown."""

    text: str = field(repr=False)

    def __str__(self) -> str:
        return "[hidden]"


@frozen
class JaasLogin:
    """A JAAS line: what we log in with, and who may log in here, by name."""

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    users: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)


@frozen
class ServerTls:
    """PEM files (KIP-651): key and certificates in one file, trusted authorities in the other.

    client_auth   `none`, `requested` or `required`: whether clients show a certificate
    principals    from a certificate's subject to its owner's name
    """

    keystore: Path
    key_password: str | None = field(default=None, repr=False)
    truststore: Path | None = None
    client_auth: str = "none"
    principals: PrincipalRules = DEFAULT_RULES


@frozen
class TokenRules:
    """What a token has to say of itself; `jwks` has the keys that it may be signed with."""

    jwks: Path
    audiences: tuple[str, ...] = ()
    """A token has to be for one of them; without any it may be for whom it likes."""
    issuer: str | None = None
    principal_claim: str = "sub"
    clock_skew_s: int = 0


@frozen
class ListenerSecurity:
    """The TLS and SASL that one listener asks of its clients."""

    tls: ServerTls | None = None
    logins: Mapping[Mechanism, JaasLogin] | None = None
    """The mechanisms enabled, None without SASL."""
    session_lifetime_ms: int = 0
    """For how long a client's word is taken (connections.max.reauth.ms, KIP-368); 0 for ever."""
    tokens: TokenRules | None = None
    """Where OAUTHBEARER is enabled."""


class ListenerSettings(Protocol):
    """The settings of a broker from which the security of its listeners follows."""

    @property
    def listeners(self) -> tuple[Listener, ...]: ...
    @property
    def inter_broker_listener(self) -> Listener:
        """The listener by which brokers come to each other. Raises BadSecurity."""

    @property
    def ssl_client_auth(self) -> str: ...
    @property
    def sasl_mechanism_inter_broker_protocol(self) -> str: ...
    @property
    def listener_settings(self) -> Mapping[str, Mapping[str, Any]]:
        """The settings of one listener alone, by the listener's name and the setting's."""

    def of_listener(self, listener: str, setting: str) -> Any:  # noqa: ANN401 - one type for each
        """Return a listener's own value of a setting, or the one for all."""


def parse_jaas(line: str) -> JaasLogin:
    """Return what a JAAS line says. Raises ValueError, which does not quote it."""
    found = _JAAS_LINE.fullmatch(line)
    if found is None:
        raise ValueError('is not of the form MODULE required username="..." user_NAME="...";')
    if found["module"] not in _MODULES:
        raise ValueError(f"{found['module']} is none of {', '.join(_MODULES)}")
    options = {name: "".join(values) for name, *values in _OPTION.findall(found["options"])}
    return JaasLogin(
        username=options.get("username"),
        password=options.get("password"),
        users={
            name.removeprefix(_USER): value
            for name, value in options.items()
            if name.startswith(_USER)
        },
    )


def security_of(config: ListenerSettings, listener: Listener) -> ListenerSecurity:
    """Return what a listener asks. Raises BadSecurity where settings are missing or contradict."""
    protocol = listener.protocol
    logins = _logins(config, listener) if protocol.uses_sasl else None
    takes_tokens = logins is not None and Mechanism.OAUTHBEARER in logins
    return ListenerSecurity(
        tls=_tls(config, listener) if protocol.uses_tls else None,
        logins=logins,
        tokens=_tokens(config, listener) if takes_tokens else None,
        session_lifetime_ms=config.of_listener(listener.name, "connections.max.reauth.ms"),
    )


def _tls(config: ListenerSettings, listener: Listener) -> ServerTls:
    keystore = config.of_listener(listener.name, "ssl.keystore.location")
    if keystore is None:
        raise BadSecurity("ssl.keystore.location", f"missing: {listener} speaks TLS")
    # As in Kafka (KIP-684): beside SASL a certificate is asked for only where that is said of the
    # listener itself.
    own = config.listener_settings.get(listener.name, {}).get("ssl.client.auth")
    client_auth = own or ("none" if listener.protocol.uses_sasl else config.ssl_client_auth)
    truststore = config.of_listener(listener.name, "ssl.truststore.location")
    if client_auth != "none" and truststore is None:
        raise BadSecurity(
            "ssl.truststore.location", f"missing: {listener} asks for its clients' certificates"
        )
    password = config.of_listener(listener.name, "ssl.key.password")
    return ServerTls(
        keystore=keystore,
        key_password=None if password is None else password.text,
        truststore=truststore,
        client_auth=client_auth,
        principals=config.of_listener(listener.name, "ssl.principal.mapping.rules"),
    )


def _logins(config: ListenerSettings, listener: Listener) -> Mapping[Mechanism, JaasLogin]:
    enabled = config.of_listener(listener.name, "sasl.enabled.mechanisms")
    if not enabled:
        raise BadSecurity("sasl.enabled.mechanisms", f"missing: {listener} asks for SASL")
    return {mechanism: _login(config, listener, mechanism) for mechanism in enabled}


def _tokens(config: ListenerSettings, listener: Listener) -> TokenRules:
    def of(setting: str) -> Any:  # noqa: ANN401 - one type for each
        return config.of_listener(listener.name, f"sasl.oauthbearer.{setting}")

    jwks = of("jwks.endpoint.url")
    if jwks is None:
        raise BadSecurity(
            "sasl.oauthbearer.jwks.endpoint.url", f"missing: {listener} takes tokens (OAUTHBEARER)"
        )
    return TokenRules(
        jwks=jwks,
        audiences=of("expected.audience"),
        issuer=of("expected.issuer"),
        principal_claim=of("sub.claim.name"),
        clock_skew_s=of("clock.skew.seconds"),
    )


def _login(config: ListenerSettings, listener: Listener, mechanism: Mechanism) -> JaasLogin:
    own = config.listener_settings.get(listener.name, {})
    login: JaasLogin | None = own.get(f"{mechanism.value.lower()}.{JAAS}")
    return login or config.of_listener(listener.name, JAAS) or JaasLogin()


def inter_broker_security(config: ListenerSettings) -> Security:
    """Return how this broker comes to the others. Raises BadSecurity."""
    listener = config.inter_broker_listener
    return Security(
        tls=_own_tls(config, listener) if listener.protocol.uses_tls else None,
        sasl=_own_login(config, listener) if listener.protocol.uses_sasl else None,
    )


def _own_tls(config: ListenerSettings, listener: Listener) -> Tls:
    served = _tls(config, listener)
    algorithm = config.of_listener(listener.name, "ssl.endpoint.identification.algorithm")
    return Tls(
        ca=served.truststore,
        certificate=served.keystore,
        key_password=served.key_password,
        checks_hostname=bool(algorithm),
    )


def _own_login(config: ListenerSettings, listener: Listener) -> Sasl:
    mechanism = Mechanism(config.sasl_mechanism_inter_broker_protocol)
    if mechanism not in _logins(config, listener):
        raise BadSecurity(
            "sasl.mechanism.inter.broker.protocol",
            f"{mechanism.value} is not enabled on {listener}, where brokers come to each other",
        )
    login = _login(config, listener, mechanism)
    if login.username is None or login.password is None:
        raise BadSecurity(
            f"{LISTENER_PREFIX}{listener.name.lower()}.{mechanism.value.lower()}.{JAAS}",
            f"needs username and password: {listener} is where brokers come to each other",
        )
    return Sasl(mechanism=mechanism, username=login.username, password=login.password)


def initial_scram_users(config: ListenerSettings) -> Iterator[tuple[Mechanism, str, str]]:
    """Yield mechanism, name and password of the SCRAM users that the settings name."""
    for listener in config.listeners:
        for mechanism, login in (security_of(config, listener).logins or {}).items():
            if mechanism in HASHES:
                for name, password in login.users.items():
                    yield mechanism, name, password
