"""Who the brokers are to their ZooKeeper, as their settings have it."""

from typing import Final, Protocol

from runtime.coordination.zookeeper_access import OPEN, Login, LoginMechanism, ZooKeeperAccess
from wire.net.secret_file import FileSecret

USERNAME: Final = "broker"


class LoginSettings(Protocol):
    """The part of a broker's settings that is about its login."""

    @property
    def zookeeper_username(self) -> str: ...
    @property
    def zookeeper_password_file(self) -> FileSecret | None: ...
    @property
    def zookeeper_set_acl(self) -> bool: ...


def access_of(settings: LoginSettings) -> ZooKeeperAccess:
    """Return how a broker connects, and with which rights it makes nodes."""
    if settings.zookeeper_password_file is None:
        return OPEN
    login = Login(
        mechanism=LoginMechanism.DIGEST,
        username=settings.zookeeper_username,
        password=settings.zookeeper_password_file,
    )
    return ZooKeeperAccess(login=login, leaves_open=not settings.zookeeper_set_acl)
