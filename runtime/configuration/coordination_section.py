"""The witness in the configuration: the section `coordination`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from types import MappingProxyType
from typing import Final

from runtime.configuration.reading.addresses import Address, in_brackets
from runtime.configuration.reading.section import Section
from runtime.configuration.security_section import MEANINGS as SECURITY_MEANINGS
from runtime.configuration.security_section import read_tls
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper_access import (
    ALL,
    OPEN,
    Grant,
    Identity,
    Login,
    LoginMechanism,
    NodeRight,
    ZooKeeperAccess,
)
from runtime.process.extras import install_command
from wire.values import frozen

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "coordination.zookeeper": "The witness: a ZooKeeper ensemble apart from both sites.",
        "coordination.path": "The node below which everything of this service lies. Pairs "
        "that have a cluster in common need different ones, also in different ensembles.",
        "coordination.session_timeout_ms": "How long the witness waits for a program that is "
        "silent. The ensemble's own limits bound it.",
        "coordination.auth.mechanism": "`digest` is ZooKeeper's own scheme, for use with TLS; "
        "`DIGEST-MD5` is SASL.",
        "coordination.auth.username": "The user. Every node is made with rights for it alone.",
        "coordination.auth.password": "The password.",
        "coordination.auth.password_file": "A file that holds `password`; read at each connection.",
        "coordination.auth.previous_password": "The last password of `digest`, while "
        "programs still have it: nodes have rights for both.",
        "coordination.auth.previous_password_file": "A file that holds `previous_password`.",
        "coordination.auth.applications": "Who may follow the active site and hand positions over, "
        "and no more: the login of `failover.client`, as `digest:<user>:<hash>` or `sasl:<user>`.",
        "coordination.auth.programs": "In the file of an application: the login of our programs, "
        "so that they can read what the application leaves in the witness.",
        **{
            f"coordination.tls.{key.removeprefix('ssl.')}": meaning.replace("broker", "server")
            for key, meaning in SECURITY_MEANINGS.items()
            if key.startswith("ssl.")
        },
    }
)
"""What each key is for."""


@frozen
class CoordinationConfig:
    """The witness: an ensemble apart from both sites, `host:port[,host:port]`."""

    zookeeper: str
    path: str
    session_timeout_ms: int
    access: ZooKeeperAccess = OPEN
    pair_path: str | None = None
    """The file's `path`, where this is that of a named set of topics."""
    topic_set: str | None = None
    """The set of topics that this is of; None of the whole file."""

    @property
    def paths(self) -> WitnessPaths:
        """Return the paths in the witness."""
        return WitnessPaths(root=self.path, pair_root=self.pair_path, topic_set=self.topic_set)

    def with_sets(self, names: Iterable[str]) -> "CoordinationConfig":
        """Return the same, with what applications may do with the nodes of these named sets."""
        grant = self.access.shared.get(self.paths.active)
        if grant is None:
            return self
        of_sets = {self.paths.of_set(name).active: grant for name in names}
        shared = MappingProxyType({**self.access.shared, **of_sets})
        return replace(self, access=replace(self.access, shared=shared))

    def of_set(self, name: str, *, is_default: bool) -> "CoordinationConfig":
        """Return the same for a set of topics; the default set has the file's path."""
        if is_default:
            return replace(self, topic_set=name)
        paths = self.paths.of_set(name)
        return replace(self, path=paths.root, pair_path=paths.pair_root, topic_set=name)


def read_coordination(section: Section) -> CoordinationConfig:
    """Take the whole section; raises ConfigurationError."""
    addresses = section.attempt(lambda: section.addresses("zookeeper"), ())
    path = section.string("path", "/kafka-dr")
    if not path.startswith("/") or path.endswith("/"):
        section.complain("path", f"{path!r} must begin with '/' and not end with it")
    if {".", ".."} & set(path.split("/")):
        section.complain("path", f"{path!r} must not have '.' or '..' for a part")
    coordination = CoordinationConfig(
        zookeeper=joined(addresses),
        path=path,
        session_timeout_ms=section.integer("session_timeout_ms", 6_000, least=2_000, most=60_000),
        access=section.attempt(lambda: _access(section, WitnessPaths(root=path)), OPEN),
    )
    section.finish()
    return coordination


def joined(addresses: Sequence[Address]) -> str:
    """Return `host:port[,host:port]`."""
    return ",".join(f"{in_brackets(host)}:{port}" for host, port in addresses)


def _access(section: Section, paths: WitnessPaths) -> ZooKeeperAccess:
    section.known.extend(("auth", "tls"))
    tls = None
    if "tls" in section.values:
        tls = section.attempt(lambda: read_tls(section.section("tls")))
    if "auth" not in section.values:
        return ZooKeeperAccess(tls=tls)
    auth = section.section("auth")
    mechanism = LoginMechanism(
        auth.choice("mechanism", tuple(one.value for one in LoginMechanism), "digest")
    )
    if mechanism is LoginMechanism.DIGEST_MD5 and find_spec("puresasl") is None:
        raise auth.error(
            "mechanism", f"DIGEST-MD5 takes the Python package pure-sasl: {install_command('sasl')}"
        )
    username, password = auth.string("username"), auth.secret("password")
    if mechanism is LoginMechanism.DIGEST and ":" in username:
        raise auth.error("username", "must not hold a colon: ZooKeeper ends the name there")
    previous = auth.secret("previous_password", required=False)
    if previous is not None and mechanism is not LoginMechanism.DIGEST:
        raise auth.error("previous_password", f"is of no use with {mechanism.value}")
    assert password is not None, "it is required"
    applications, programs = _identity(auth, "applications"), _identity(auth, "programs")
    auth.finish()
    shared = {}
    if applications is not None:
        shared = {
            paths.active: Grant(applications, NodeRight.READ),
            paths.groups: Grant(applications, NodeRight.READ | NodeRight.CREATE),
            f"{paths.groups}/": Grant(applications, ALL),
        }
    return ZooKeeperAccess(
        login=Login(
            mechanism=mechanism,
            username=username,
            password=password,
            previous_password=previous,
        ),
        tls=tls,
        also=() if programs is None else (programs,),
        shared=MappingProxyType(shared),
    )


def _identity(section: Section, key: str) -> Identity | None:
    text = section.optional_string(key)
    if text is None:
        return None
    try:
        return Identity.parse(text)
    except ValueError as error:
        raise section.error(key, str(error)) from None
