"""kazoo's client, made the one way that all programs have it: logins, TLS, and retries."""

import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from errno import ECONNABORTED
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionDropped
from kazoo.security import ACL, Id

from runtime.coordination.zookeeper_access import Grant, LoginMechanism, ZooKeeperAccess
from wire.net.security import Tls, reveal
from wire.net.tls_context import RenewedContext, reason_of, renewed_client_context

RECONNECT_DELAY_S: Final = 1.0  # kazoo's own default backs off up to an hour


class _TlsHandler(SequentialThreadingHandler):  # type: ignore[misc] # kazoo is untyped
    """Connects as our clients of brokers do: only the given authorities, files read anew."""

    def __init__(self, tls: Tls) -> None:
        super().__init__()
        self._tls = tls
        self._renewed: RenewedContext | None = None

    def create_connection(  # type: ignore[override, unused-ignore]
        self,
        address: tuple[str, int],
        hostname: str,
        timeout: float,
        **_: object,
    ) -> socket.socket:
        context = self._read_context()
        plain = socket.create_connection(address, timeout)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return context.wrap_socket(plain, server_hostname=hostname)
        except ssl.SSLCertVerificationError as fault:
            plain.close()
            why = f"its certificate is not trusted: {reason_of(fault)} ({self._tls.trusted})"
            raise ConnectionAbortedError(ECONNABORTED, f"TLS: {why}") from fault
        except ssl.SSLError as fault:
            plain.close()
            why = f"{reason_of(fault)} ({self._tls.shown})"
            raise ConnectionAbortedError(ECONNABORTED, f"TLS: {why}") from fault
        except BaseException:
            plain.close()
            raise

    def _read_context(self) -> ssl.SSLContext:
        """Raise OSError that names the files, after which kazoo tries again."""
        try:
            if self._renewed is None:
                self._renewed = renewed_client_context(self._tls)
            return self._renewed.current()
        except OSError as fault:
            why = reason_of(fault) if isinstance(fault, ssl.SSLError) else fault.strerror
            named = f"TLS: {why} ({self._tls.trusted}; {self._tls.shown})"
            raise ConnectionAbortedError(ECONNABORTED, named) from fault


def make_client(
    hosts: str,
    *,
    session_timeout_ms: int,
    access: ZooKeeperAccess,
    on_login: Callable[[ZooKeeperAccess], None] | None = None,
    on_connected: Callable[[int], None] | None = None,
    on_refused: Callable[[str], None] | None = None,
) -> KazooClient:
    """Return a client that is not started, and that never gives up.

    `on_login` hears with which password each connection logs in, `on_connected` the session
    timeout, in ms, that it is granted, and `on_refused` why an attempt failed, all in kazoo's
    thread.
    """
    client = KazooClient(
        hosts=hosts,
        timeout=session_timeout_ms / 1000,
        handler=None if access.tls is None else _TlsHandler(access.tls),
        use_ssl=access.tls is not None,
        default_acl=kazoo_acl(access.grants("")),
        connection_retry={"max_tries": -1, "delay": 0.1, "max_delay": RECONNECT_DELAY_S},
    )
    connection = client._connection  # noqa: SLF001 - there is no other way in
    connect: Callable[..., tuple[float, float]] = connection._connect  # noqa: SLF001

    def log_in_and_connect(*arguments: object) -> tuple[float, float]:
        held = _log_in(client, access)
        if on_login is not None:
            on_login(held)
        try:
            read_timeout_ms, connect_timeout_ms = connect(*arguments)
        except AuthFailedError as error:
            # kazoo would stop for ever, and the password's file may be right in a minute.
            fault = ConnectionDropped(f"the login is refused ({access.origin})")
            if on_refused is not None:
                on_refused(str(fault))
            raise fault from error
        except Exception as error:
            if on_refused is not None:
                on_refused(str(error))
            raise
        if on_connected is not None:
            on_connected(round(read_timeout_ms * 3 / 2))  # kazoo waits for two thirds of it
        return read_timeout_ms, connect_timeout_ms

    connection._connect = log_in_and_connect  # noqa: SLF001
    return client


def _log_in(client: KazooClient, access: ZooKeeperAccess) -> ZooKeeperAccess:
    """Have the next connection log in with what the password's file holds now, and return that.

    What the connection makes has rights for who it is, whatever the file holds by then: it could
    not read its own nodes otherwise.
    """
    if access.login is None:
        return access
    former = access.login.previous_password
    login = replace(
        access.login,
        password=reveal(access.login.password),
        previous_password=None if former is None else reveal(former),
    )
    held = replace(access, login=login)
    client.default_acl = kazoo_acl(held.grants(""))
    if login.mechanism is LoginMechanism.DIGEST:
        client.auth_data = {("digest", f"{login.username}:{one}") for one in login.passwords()}
        return held
    client._connection.sasl_options = {  # noqa: SLF001 - only its constructor takes them
        "mechanism": login.mechanism.value,
        "username": login.username,
        "password": reveal(login.password),
    }
    return held


def log_in_again(client: KazooClient, access: ZooKeeperAccess) -> ZooKeeperAccess:
    """Log in with what the password's file holds now, on the connection there is; return that.

    Of use with the digest scheme alone: it takes every password, for another identity each. What
    SASL refuses has no connection. Raises nothing; an answer is not waited for.
    """
    login = access.login
    if login is None or login.mechanism is not LoginMechanism.DIGEST:
        return access
    held = _log_in(client, access)
    for scheme, credential in tuple(client.auth_data):
        client.add_auth_async(scheme, credential)
    return held


def kazoo_acl(grants: tuple[Grant, ...]) -> list[Any]:
    """Return rights as kazoo wants them."""
    return [
        ACL(int(grant.rights), Id(grant.identity.scheme, grant.identity.name)) for grant in grants
    ]
