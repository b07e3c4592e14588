"""Who we are to a ZooKeeper, who may touch what we make there, and how we connect: values.

ZooKeeper asks for rights node by node: those of a parent say nothing about its children. So each
node is made with rights of its own, which name identities: `digest:<user>:<hash>` or `sasl:<user>`.
A connection has the identity of each login that was tried on it. The server compares it with the
rights of a node, and a digest login with a wrong password is simply another identity.
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntFlag
from types import MappingProxyType
from typing import Final, Self

from wire.net.secret_file import FileSecret
from wire.net.security import Secret, Tls, reveal
from wire.values import frozen


class LoginMechanism(Enum):
    """How a user proves to be one; the values are those of `coordination.auth.mechanism`."""

    DIGEST = "digest"
    """ZooKeeper's own scheme. The password travels as it is: use it with TLS."""
    DIGEST_MD5 = "DIGEST-MD5"
    """SASL, by RFC 2831. The server knows the users, and the password does not travel."""


class NodeRight(IntFlag):
    """ZooKeeper's rights, with its numbers (org.apache.zookeeper.ZooDefs.Perms)."""

    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16


ALL: Final = (
    NodeRight.READ | NodeRight.WRITE | NodeRight.CREATE | NodeRight.DELETE | NodeRight.ADMIN
)


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """Somebody as ZooKeeper's rights name them; printed as `scheme:name`."""

    scheme: str
    name: str

    def __str__(self) -> str:
        return f"{self.scheme}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the identity of `digest:<user>:<hash>` or `sasl:<user>`; raises ValueError."""
        scheme, _, name = text.partition(":")
        user, colon, digest = name.rpartition(":")
        if scheme == "sasl" and name:
            return cls(scheme, name)
        if scheme == "digest" and user and colon and _is_sha1(digest):
            return cls(scheme, name)
        raise ValueError(f"{text!r} is neither digest:<user>:<hash> nor sasl:<user>")


SHA1_BYTES: Final = 20
ANYBODY: Final = Identity("world", "anyone")


def _is_sha1(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == SHA1_BYTES
    except ValueError:
        return False


@frozen(kw_only=False)
class Grant:
    """One line of a node's rights."""

    identity: Identity
    rights: NodeRight


def digest_identity(username: str, password: str) -> Identity:
    """Return what the digest scheme makes of a login (DigestAuthenticationProvider)."""
    hashed = hashlib.sha1(f"{username}:{password}".encode())  # noqa: S324 - the scheme's own
    digest = hashed.digest()
    return Identity("digest", f"{username}:{base64.b64encode(digest).decode()}")


@frozen
class Login:
    """A user and its password, which is read anew for each connection."""

    mechanism: LoginMechanism
    username: str
    password: Secret = field(repr=False)
    previous_password: Secret | None = field(default=None, repr=False)
    """Of the digest scheme, while programs still have it: connections and nodes have both."""

    @property
    def identity(self) -> Identity:
        """Return who we are, as a node's rights name it."""
        if self.mechanism is LoginMechanism.DIGEST_MD5:
            return Identity("sasl", self.username)
        return digest_identity(self.username, reveal(self.password))

    @property
    def origin(self) -> str:
        """Return where the credentials come from, as a person finds them."""
        file = self.password
        where = f" with the password in {file.origin}" if isinstance(file, FileSecret) else ""
        return f"user {self.username!r}{where}"

    def identities(self) -> tuple[Identity, ...]:
        """Return who we are and, while a previous password is named, who we were.

        Programs that have not been started anew with the new password read our nodes as well.
        """
        if self.previous_password is None:
            return (self.identity,)
        former = digest_identity(self.username, reveal(self.previous_password))
        return tuple(dict.fromkeys((self.identity, former)))

    def passwords(self) -> tuple[str, ...]:
        """Return each password that is tried on a connection."""
        secrets = (self.password, self.previous_password)
        return tuple(reveal(secret) for secret in secrets if secret is not None)


@frozen
class ZooKeeperAccess:
    """How to connect, and with which rights nodes are made; without a login with anybody's."""

    login: Login | None = None
    tls: Tls | None = None
    also: tuple[Identity, ...] = ()
    """These may do on our nodes what we may."""
    shared: Mapping[str, Grant] = field(default_factory=lambda: MappingProxyType({}))
    """What others may do with a node, by its path; one that ends with `/` is of all below."""
    leaves_open: bool = False
    """Make nodes for everybody in spite of a login, while some programs have none yet."""

    @property
    def origin(self) -> str:
        """Return whose credentials are shown, as a person finds them."""
        return "no login" if self.login is None else self.login.origin

    def grants(self, path: str) -> tuple[Grant, ...]:
        """Return the rights with which a node is made."""
        if self.login is None or self.leaves_open:
            return (Grant(ANYBODY, ALL),)
        own = tuple(Grant(identity, ALL) for identity in (*self.login.identities(), *self.also))
        return (*own, *(grant for of, grant in self.shared.items() if _is_of(of, path)))


def _is_of(shared: str, path: str) -> bool:
    return path.startswith(shared) if shared.endswith("/") else path == shared


OPEN: Final = ZooKeeperAccess()
"""No login and no TLS: whoever reaches the port may do everything."""
