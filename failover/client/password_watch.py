"""A password that a file holds, given to a confluent-kafka client when the file changes.

librdkafka takes the credentials that it is made with. Once it is told of others, it logs in with
them at its next connection. What an application has named itself stays as it is.
"""

from collections.abc import Mapping
from time import monotonic
from typing import Any, Final, Protocol

from runtime.configuration.config import ClusterConfig
from wire.net.secret_file import FileSecret
from wire.net.security import Sasl

LOOK_S: Final = 1.0
"""The file is read so often, within calls of the application."""
OWN: Final = ("sasl.username", "sasl.password")


class Client(Protocol):
    """A Consumer or a Producer of confluent-kafka."""

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in with these from the next connection on."""


class PasswordWatch:
    """What one client has been told."""

    def __init__(
        self, cluster: ClusterConfig, own: Mapping[str, Any], made_with: Mapping[str, Any]
    ) -> None:
        """`own` are the application's settings, `made_with` those that the client is made with."""
        sasl = cluster.security.sasl
        is_named = any(key in own for key in OWN)
        self._sasl = sasl if isinstance(sasl, Sasl) and not is_named else None
        self._told = made_with.get("sasl.password")
        self._look_at = monotonic() + LOOK_S

    def look(self, client: Client) -> None:
        """Tell the client of another password, if it is time to look and there is one."""
        if self._sasl is None or not isinstance(self._sasl.password, FileSecret):
            return
        now = monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_S
        password = self._sasl.password.find()
        if password is not None and password != self._told:
            client.set_sasl_credentials(self._sasl.username, password)
            self._told = password
