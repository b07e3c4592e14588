"""The active site as an application sees it: the client's only door to kazoo.

Application code is ordinary synchronous code, so this is not `runtime.coordination.zookeeper`,
which lives in a trio loop: kazoo's own threads keep the value up to date, and a caller gets the
last one known. When the witness cannot be reached the last known value stays: a client leaves a
site only when the witness says so.
"""

import logging
from threading import Condition, Lock
from typing import Any, Final

from kazoo.client import KazooState
from kazoo.exceptions import KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import ZnodeStat

from runtime.configuration.config import Configuration
from runtime.coordination.kazoo_client import kazoo_acl, log_in_again, make_client
from runtime.coordination.witness import ActiveSite, WitnessGarbled
from runtime.coordination.zookeeper_access import ZooKeeperAccess
from runtime.set_option import set_option

_LOG = logging.getLogger(__name__)

START_TIMEOUT_S: Final = 15.0
ANSWER_TIMEOUT_S: Final = 2.0
MOST_MEMBERS: Final = 5_000
"""Far more members than a group has. Every application may write there."""
LOOK_EVERY_S: Final = 5.0
"""So often the active site is read without being told of a change.

A server tells those of a change who may read it. Who may no longer is told nothing.
"""


class WitnessUnreachable(ConnectionError):
    """The witness did not answer, so it is not known which site is active."""


class ActiveSiteWatch:
    """The active site, followed in the background until close()."""

    def __init__(self, configuration: Configuration) -> None:
        """Connect and wait for the first value, which is never written here.

        Raises WitnessUnreachable.
        """
        coordination = configuration.coordination
        self._changed = Condition()
        self._current: ActiveSite | None = None
        self._written_at = 0
        self._posted: dict[str, bytes] = {}
        self._posting = Lock()
        self._timeout_s = coordination.session_timeout_ms / 1000
        self._witness, self._access = coordination.zookeeper, coordination.access
        self._held = coordination.access
        """The same with the passwords that this connection has logged in with."""
        self._refusal = ""
        """Why we are not let in, or are not shown the active site."""
        self._is_hidden = False
        self._is_closed = False
        self._client = make_client(
            coordination.zookeeper,
            session_timeout_ms=coordination.session_timeout_ms,
            access=coordination.access,
            on_login=self._hold,
            on_refused=self._on_refused,
        )
        path = self._path = coordination.paths.active
        self._topic_set = coordination.topic_set
        self._client.add_listener(self._on_state)
        try:
            self._client.start(timeout=START_TIMEOUT_S)
        except (KazooException, KazooTimeoutError) as error:
            self.close()
            raise WitnessUnreachable(
                f"the witness at {coordination.zookeeper} does not answer: {self._refusal or error}"
            ) from error
        self._client.handler.spawn(self._look_until_closed)
        with self._changed:
            self._changed.wait_for(
                lambda: self._current is not None or self._is_hidden, START_TIMEOUT_S
            )
        if self._current is None:
            self.close()
            if self._is_hidden:
                raise WitnessUnreachable(
                    f"the witness at {coordination.zookeeper}: {self._refusal}"
                )
            raise WitnessUnreachable(
                f"the witness holds no active site at {path}; `mirror run` or `failover serve`"
                f" starts a new pair, `failover recover{set_option(coordination.topic_set)}`"
                " restores a witness that has lost its memory"
            )

    def current(self) -> ActiveSite:
        """Return the active site as last heard."""
        assert self._current is not None, "the constructor waits for the first value"
        return self._current

    @property
    def written_at(self) -> int:
        """Return the witness's number for the write that was last heard of."""
        return self._written_at

    def ask_written_at(self) -> int:
        """Return the number of the last write there is now; raises WitnessUnreachable.

        More was written if it is another one than `written_at`, although the site may be the same.
        """
        try:
            self._client.sync_async(self._path)
            _, stat = self._client.get_async(self._path).get(timeout=ANSWER_TIMEOUT_S)
        except (KazooException, KazooTimeoutError) as error:
            raise WitnessUnreachable(f"the witness did not show {self._path}: {error!r}") from error
        return int(stat.mzxid)

    def wait_changed(self, known: ActiveSite, timeout_s: float) -> ActiveSite:
        """Return the active site once it differs from `known`, or as it is after the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: self._current != known, timeout_s)
            assert self._current is not None, "the constructor waits for the first value"
            return self._current

    def post(self, path: str, data: bytes) -> None:
        """Write an ephemeral node of this client's own; raises WitnessUnreachable.

        It lies there until close(): it is written again when a session has ended, or when the
        witness has lost its memory.
        """
        with self._posting:
            self._posted[path] = data
            self._put(path, data)

    def posted(self, path: str) -> dict[str, bytes]:
        """Return the nodes below a path by name; raises WitnessUnreachable, also of too many."""
        found: dict[str, bytes] = {}
        try:
            names = self._client.get_children_async(path).get(timeout=ANSWER_TIMEOUT_S)
            if len(names) > MOST_MEMBERS:
                raise WitnessUnreachable(f"{path} has {len(names)} nodes, above {MOST_MEMBERS}")
            for name in names:
                try:
                    data, _ = self._client.get_async(f"{path}/{name}").get(timeout=ANSWER_TIMEOUT_S)
                except NoNodeError:
                    continue  # its client has just gone
                found[name] = data
        except NoNodeError:
            return {}
        except (KazooException, KazooTimeoutError) as error:
            raise WitnessUnreachable(f"the witness did not show {path}: {error!r}") from error
        return found

    def drop_later(self, holder: list[Any]) -> None:
        """Empty a list in a thread of kazoo's: what it holds may block while it ends."""
        self._client.handler.spawn(holder.clear)

    def close(self) -> None:
        """End the session; the last value stays readable."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._client.stop()
        self._client.close()

    def _put(self, path: str, data: bytes) -> None:
        """Have a node of our session say this; raises WitnessUnreachable."""
        try:
            try:
                stat = self._client.set_async(path, data).get(timeout=ANSWER_TIMEOUT_S)
                if stat.ephemeralOwner == self._client.client_id[0]:
                    return
                # It is of an earlier session, and goes when that is over.
                self._client.delete_async(path).get(timeout=ANSWER_TIMEOUT_S)
            except NoNodeError:
                pass  # nobody has made it, or it has gone with its session
            rights = kazoo_acl(self._held.grants(path))
            made = self._client.create_async(path, data, rights, ephemeral=True, makepath=True)
            made.get(timeout=ANSWER_TIMEOUT_S)
        except (KazooException, KazooTimeoutError) as error:
            raise WitnessUnreachable(f"the witness did not take {path}: {error!r}") from error

    def _put_again(self) -> None:
        """Write what was posted once more; after a fault the next connection does so."""
        for path in tuple(self._posted):
            try:
                with self._posting:  # what is posted meanwhile must not be written over
                    self._put(path, self._posted[path])
            except WitnessUnreachable as error:
                _LOG.warning("what this client has posted may be gone: %s", error)

    def _hold(self, access: ZooKeeperAccess) -> None:
        """Called in a thread of kazoo's, at each login."""
        self._held = access

    def _on_refused(self, why: str) -> None:
        """Called in a thread of kazoo's, at each attempt that fails; the log says it once."""
        if why != self._refusal and self._current is not None:
            _LOG.warning(
                "the witness at %s: %s; the site that was active last counts", self._witness, why
            )
        self._refusal = why

    def _on_state(self, state: str) -> None:
        """Called in a thread of kazoo's. Ask no server for more than it has once we are forgotten.

        A server refuses whoever has seen a later write than it has. One that has lost its data, or
        has got an old copy, would otherwise refuse us for as long as we live.
        """
        if state == KazooState.SUSPENDED:
            self._client.handler.spawn(self._forget_when_over)
            return
        if state == KazooState.CONNECTED:
            self._client.handler.spawn(self._read)
            if self._posted:
                self._client.handler.spawn(self._put_again)
        with self._changed:
            self._changed.notify_all()

    def _forget_when_over(self) -> None:
        """Wait until the session must be over, or is there again."""
        with self._changed:
            if not self._changed.wait_for(self._is_not_suspended, self._timeout_s):
                self._client.last_zxid = 0

    def _is_not_suspended(self) -> bool:
        return str(self._client.state) != str(KazooState.SUSPENDED)

    def _read(self, _: object = None) -> None:
        """Read and watch: called in threads of kazoo's, at each connection and each change."""
        try:
            data, stat = self._client.get(self._path, self._read)
        except NoNodeError:
            self._watch_for_node()
        except NoAuthError:
            self._on_hidden()
        except (KazooException, KazooTimeoutError) as error:
            _LOG.debug("the active site was not read: %r", error)
        else:
            self._refusal, self._is_hidden = "", False
            self._on_data(data, stat)

    def _watch_for_node(self) -> None:
        try:
            if self._client.exists(self._path, self._read) is not None:
                self._client.handler.spawn(self._read)  # it was made in between
        except (KazooException, KazooTimeoutError) as error:
            _LOG.debug("the active site was not looked for: %r", error)

    def _on_hidden(self) -> None:
        """Say so; it is read again before long."""
        with self._changed:
            self._is_hidden = True
            self._on_refused(f"{self._path} is not shown to us ({self._access.origin})")
            self._changed.notify_all()

    def _look_until_closed(self) -> None:
        """Read again and again, and log in anew where a password's file may be right by now."""
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._is_closed, LOOK_EVERY_S):
                    return
            if self._is_hidden:
                self._hold(log_in_again(self._client, self._access))
            self._read()

    def _on_data(self, data: bytes, stat: ZnodeStat) -> None:
        """Called in a thread of kazoo's."""
        try:
            active = ActiveSite.decode(data, topic_set=self._topic_set)
        except WitnessGarbled:
            _LOG.exception("the active site is not understood, so the last one stays")
            return
        with self._changed:
            if self._current is None or active.epoch >= self._current.epoch:
                self._current = active
                self._written_at = stat.mzxid
                self._changed.notify_all()
