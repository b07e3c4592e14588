"""How one confluent-kafka client logs in at a site, and what it says of a login that is refused.

librdkafka reports by `error_cb`, and knows neither the key nor the file of what it shows. Both are
added here, and the log has it. An application's own `error_cb` is called with the same.
"""

import logging
import random
import ssl
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from failover.client.faults import NO_TOKEN, NOT_LET_IN, TLS_FAILED, code_of
from failover.client.password_watch import OWN, Client, PasswordWatch
from runtime.configuration.config import OWN_LOGIN, ClusterConfig
from runtime.tokens.librdkafka import TokenCallback
from wire.net.backoff import Backoff
from wire.net.client_settings import Growing
from wire.net.errors import TokenUnavailable
from wire.net.security import Tls
from wire.net.tls_context import make_context, reason_of

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

AGAIN_S: Final = 60.0
"""The log has the same refusal so often; librdkafka tells nobody that a login has succeeded."""
LOST_ON_THE_WAY: Final = "handshake failed: Local:"
"""What librdkafka calls a failed login as well: its connection ended before the broker answered."""
TOKEN: Final = "oauth_cb"  # noqa: S105 - the name of a setting
OWN_TLS: Final = "ssl."


class SiteUnreadable(ConnectionError):
    """The site did not answer in time; the message names what was read."""


class LoginUnusable(SiteUnreadable):
    """There is nothing to log in with, or it is refused; the message names key and file."""


NOT_YET_TRIED: Final = Backoff(pauses=Growing(first_ms=500, longest_ms=500))
"""A site that is not refused is tried again soon: it may be about to come back."""


def after_failure(pause: Backoff, error: SiteUnreadable) -> Backoff:
    """Return when the site is tried again."""
    was_refused = isinstance(error, LoginUnusable)
    return pause.after_failure(monotonic(), random.random(), was_refused=was_refused)  # noqa: S311


class SiteLogin:
    """The settings that let one client in, and what that client has been told since."""

    def __init__(self, cluster: ClusterConfig, own: Mapping[str, Any]) -> None:
        """`own` are the application's settings, which go before."""
        self._cluster = cluster
        self._reach = cluster.client_settings(own)
        self._password = PasswordWatch(cluster, own, self._reach)
        self._application = own.get("error_cb")
        callback = self._reach.get(TOKEN)
        self._tokens = callback if isinstance(callback, TokenCallback) else None
        self._has_own_login = not {*OWN_LOGIN, *OWN, TOKEN}.isdisjoint(own)
        self._has_own_tls = any(key.startswith(OWN_TLS) for key in own)
        self._said, self._say_again_at = "", 0.0
        self.refusal = ""
        """What was refused last, for whoever hears only that a site does not answer."""

    def open(self, make: Callable[[dict[str, Any]], _T], **settings: object) -> _T:
        """Return what `make` makes of the settings, of which these are ours.

        Raises LoginUnusable for what may be mended while we run: a token that cannot be had, a
        file that cannot be read. Raises KafkaException for other settings that are of no use.
        """
        if self._tokens is not None:
            try:
                self._tokens.source.token()  # librdkafka would wait ten seconds, and not say why
            except TokenUnavailable as problem:
                raise LoginUnusable(str(problem)) from None
        try:
            return make({**self._reach, **settings, "error_cb": self.hear})
        except KafkaException as fault:
            why = self._why_not_made(fault)
            if why is None:
                raise
            raise LoginUnusable(why) from fault

    def look(self, client: Client) -> None:
        """Tell the client of a password that has changed in its file."""
        self._password.look(client)

    def hear(self, error: KafkaError) -> None:
        """Take what librdkafka reports; it calls this within calls of the application's."""
        origin = self._origin(error)
        if origin is not None:
            error = _with_origin(error, origin)
            self.refusal = f"{error.str()}"
            self._say(origin)
        if self._application is not None:
            self._application(error)

    def _say(self, origin: str) -> None:
        now = monotonic()
        if origin != self._said or now >= self._say_again_at:
            self._said, self._say_again_at = origin, now + AGAIN_S
            _LOG.warning("%s does not let us in: %s", self._cluster.name, self.refusal)

    def _origin(self, error: KafkaError) -> str | None:
        """Return what was refused, as a person finds it; None for an error of another kind."""
        code = error.code()
        if code == TLS_FAILED:
            return _OF_APPLICATION if self._has_own_tls else _of_tls(self._cluster.security.tls)
        if code not in NOT_LET_IN or LOST_ON_THE_WAY in f"{error.str()}":
            return None
        sasl = self._cluster.security.sasl
        if self._has_own_login or sasl is None:
            return _OF_APPLICATION
        if self._tokens is not None:
            if self._tokens.failure:
                return self._tokens.failure
            self._tokens.note_refused()
        return sasl.origin

    def _why_not_made(self, fault: KafkaException) -> str | None:
        if code_of(fault) == NO_TOKEN:
            return self._tokens.failure if self._tokens is not None else str(fault)
        tls = self._cluster.security.tls
        if tls is None or self._has_own_tls:
            return None
        try:
            make_context(tls)
        except OSError as problem:
            why = reason_of(problem) if isinstance(problem, ssl.SSLError) else problem.strerror
            return f"{why} ({_of_tls(tls)})"
        return None


_OF_APPLICATION: Final = "of the application's own settings"


def _of_tls(tls: Tls | None) -> str:
    return _OF_APPLICATION if tls is None else f"{tls.trusted}; {tls.shown}"


def _with_origin(error: KafkaError, origin: str) -> KafkaError:
    return KafkaError(
        error.code(),
        f"{error.str()} ({origin})",
        error.fatal(),
        error.retriable(),
        error.txn_requires_abort(),
    )
