"""The only door to kazoo: ZooKeeper as trio-native calls, values and channels.

kazoo runs threads of its own; its results and events are handed to the trio loop through
`run_sync_soon`, so no call here blocks the loop or takes a thread of trio's.
"""

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from enum import Enum
from functools import partial
from typing import Any, Final, TypeVar

import trio
from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import WatchedEvent

from runtime.coordination.kazoo_client import kazoo_acl, make_client
from runtime.coordination.zookeeper_access import OPEN, Grant, Identity, NodeRight, ZooKeeperAccess
from runtime.coordination.zookeeper_faults import (
    BadVersion,
    NodeExists,
    NoNode,
    NotAllowed,
    NotEmpty,
    ZooKeeperFault,
    ZooKeeperUnreachable,
    fault_of,
)
from runtime.coordination.zookeeper_operations import (
    Check,
    Create,
    Delete,
    Operation,
    SetData,
    ZNode,
    node_of,
)
from runtime.process.tasks import background_tasks

__all__ = [
    "BadVersion",
    "Check",
    "Create",
    "Delete",
    "NoNode",
    "NodeExists",
    "NotAllowed",
    "NotEmpty",
    "Operation",
    "SessionState",
    "SetData",
    "ZNode",
    "ZooKeeper",
    "ZooKeeperFault",
    "ZooKeeperUnreachable",
    "open_zookeeper",
]

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

CLOSE_TIMEOUT_S: Final = 3


class SessionState(Enum):
    """The session's state: SUSPENDED means stop acting, LOST means all ephemerals are gone."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


class ZooKeeper:
    """One session. Made by open_zookeeper; a lost session is replaced by a new one by itself."""

    def __init__(self, hosts: str, session_timeout_ms: int, access: ZooKeeperAccess) -> None:
        self._hosts = hosts
        self._session_timeout_ms = session_timeout_ms
        self._access = access
        self._origin = access.origin
        self._refusal = ""
        self._client = client = make_client(
            hosts,
            session_timeout_ms=session_timeout_ms,
            access=access,
            on_login=self._hold,
            on_connected=self._grant,
            on_refused=self._refuse,
        )
        self._token = trio.lowlevel.current_trio_token()
        self._state = SessionState.LOST
        self._suspended_since = math.inf
        self._was_connected = False
        self._state_changed = trio.Event()
        client.add_listener(self._on_kazoo_state)

    @property
    def session_timeout_ms(self) -> int:
        """Return the granted session timeout: after so long without a word from us it ends."""
        return self._session_timeout_ms

    @property
    def access(self) -> ZooKeeperAccess:
        """Return who we are on this connection, and with which rights nodes are made."""
        return self._access

    def _grant(self, session_timeout_ms: int) -> None:
        """Take note of what a server grants, which may be less than was asked for."""
        self._session_timeout_ms = session_timeout_ms

    def _hold(self, access: ZooKeeperAccess) -> None:
        self._access = access

    def _refuse(self, why: str) -> None:
        self._refusal = why

    @property
    def state(self) -> SessionState:
        """Return the state of the session as last heard."""
        return self._state

    @property
    def session_id(self) -> int:
        """Return the id of the session now held, as ephemeral owners show it; 0 when none."""
        client_id = self._client.client_id
        return int(client_id[0] or 0) if client_id else 0

    async def get(self, path: str) -> ZNode | None:
        """Return the node, None when there is none."""
        try:
            data, stat = await self._call(path, self._client.get_async, path)
        except NoNode:
            return None
        return node_of(data, stat)

    async def exists(self, path: str) -> bool:
        """Return whether the path exists."""
        return await self._call(path, self._client.exists_async, path) is not None

    async def sync(self) -> None:
        """Return once our server has asked the leading server, and has caught up with it."""
        await self._call("/", self._client.sync_async, "/")

    async def children(self, path: str) -> list[str] | None:
        """Return the sorted names below the path, None when it does not exist."""
        try:
            return sorted(await self._call(path, self._client.get_children_async, path))
        except NoNode:
            return None

    async def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        make_parents: bool = False,
    ) -> str:
        """Create a node and return its path; raises NodeExists or NoNode (no parent)."""
        if make_parents:
            await self.ensure(path.rpartition("/")[0])
        create = partial(
            self._client.create_async,
            path,
            data,
            kazoo_acl(self._access.grants(path)),
            ephemeral=ephemeral,
            sequence=sequence,
        )
        return str(await self._call(path, create))

    async def ensure(self, path: str) -> None:
        """Create the path and its parents, empty, where they are missing."""
        if path:
            await self._call(path, self._client.ensure_path_async, path)

    async def set(self, path: str, data: bytes, *, version: int = -1) -> int:
        """Set the node's data and return its new version; raises BadVersion or NoNode."""
        stat = await self._call(path, self._client.set_async, path, data, version)
        return int(stat.version)

    async def delete(self, path: str, *, version: int = -1, recursive: bool = False) -> None:
        """Delete the node; raises NoNode, BadVersion, or NotEmpty unless `recursive`."""
        if recursive:
            for child in await self.children(path) or ():
                await self.delete(f"{path}/{child}", recursive=True)
        await self._call(path, self._client.delete_async, path, version)

    async def rights(self, path: str) -> tuple[Grant, ...] | None:
        """Return who may do what with a node; None where there is none."""
        try:
            lines, _ = await self._call(path, self._client.get_acls_async, path)
        except NoNode:
            return None
        return tuple(
            Grant(Identity(line.id.scheme, line.id.id), NodeRight(line.perms)) for line in lines
        )

    async def set_rights(self, path: str) -> None:
        """Give a node the rights with which it would be made; raises NotAllowed or NoNode."""
        await self._call(
            path, self._client.set_acls_async, path, kazoo_acl(self._access.grants(path))
        )

    async def transaction(self, operations: Sequence[Operation]) -> None:
        """Do all operations or none; raises the fault of the first one that could not be done."""
        request = self._client.transaction()
        for operation in operations:
            match operation:
                case Create():
                    rights = kazoo_acl(self._access.grants(operation.path))
                    request.create(
                        operation.path, operation.data, rights, ephemeral=operation.ephemeral
                    )
                case SetData():
                    request.set_data(operation.path, operation.data, operation.version)
                case Delete():
                    request.delete(operation.path, operation.version)
                case Check():
                    request.check(operation.path, operation.version)
        results = await self._call(operations[0].path, request.commit_async)
        for operation, result in zip(operations, results, strict=True):
            rolled_back = isinstance(result, kazoo_errors.RolledBackError)
            follows = isinstance(result, kazoo_errors.RuntimeInconsistency)
            if isinstance(result, Exception) and not (rolled_back or follows):
                raise fault_of(result, operation.path, self._origin)

    def watch_data(
        self, path: str
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[ZNode | None]]:
        """Open a channel of the node's values: the present one first, then the newest on change."""
        return self._watch(partial(self._read_and_watch_data, path))

    def watch_children(
        self, path: str
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[list[str] | None]]:
        """Open a channel of the sorted child names, the present ones first, None for no node."""
        return self._watch(partial(self._read_and_watch_children, path))

    @asynccontextmanager
    async def watch_state(self) -> AsyncIterator[trio.MemoryReceiveChannel[SessionState]]:
        """Open a channel of session states, the present one first; slow readers get the newest.

        The same state comes again when it was another meanwhile: that may be a new session.
        """
        send, receive = trio.open_memory_channel[SessionState](0)

        async def follow() -> None:
            while True:
                changed = self._state_changed
                await send.send(self._state)
                await changed.wait()

        async with background_tasks() as tasks:
            tasks.start_soon(follow)
            yield receive

    async def wait_connected(self) -> None:
        """Return when the session is connected."""
        while self._state is not SessionState.CONNECTED:
            await self._state_changed.wait()

    async def start(self, timeout_ms: int) -> None:
        """Connect, and log in; raises ZooKeeperUnreachable with the last reason."""
        self._client.start_async()
        with trio.move_on_after(timeout_ms / 1000):
            while True:
                await self.wait_connected()
                if self._access.login is None:
                    return
                try:
                    await self.sync()  # a login is refused only behind the connection
                except ZooKeeperUnreachable:
                    continue
                return
        await self.close()
        why = f": {self._refusal}" if self._refusal else ""
        raise ZooKeeperUnreachable(
            f"ZooKeeper {self._hosts} did not answer within {timeout_ms / 1000:g} s{why}"
        )

    async def close(self) -> None:
        """End the session."""
        self._client.remove_listener(self._on_kazoo_state)  # its end is no loss
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_TIMEOUT_S):
            await trio.to_thread.run_sync(_close, self._client, abandon_on_cancel=True)

    async def _call(  # kazoo's results are untyped; the public methods type them
        self,
        what: str,
        start: Callable[..., Any],
        *arguments: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        done = trio.Event()
        result = start(*arguments)
        result.rawlink(lambda _: self._soon(done.set))
        await done.wait()
        try:
            return result.get(block=False)
        except (kazoo_errors.KazooException, KazooTimeoutError) as error:
            raise fault_of(error, f"ZooKeeper {self._hosts} {what}", self._origin) from error

    def _soon(self, function: Callable[..., object], *arguments: object) -> None:
        """Run in the trio loop from a thread of kazoo's; nothing to do when the loop has ended."""
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(function, *arguments)

    async def _read_and_watch_data(
        self, path: str, changed: Callable[[WatchedEvent], None]
    ) -> ZNode | None:
        while True:
            try:
                data, stat = await self._call(path, self._client.get_async, path, changed)
            except NoNode:
                if await self._call(path, self._client.exists_async, path, changed) is None:
                    return None
            else:
                return node_of(data, stat)

    async def _read_and_watch_children(
        self, path: str, changed: Callable[[WatchedEvent], None]
    ) -> list[str] | None:
        while True:
            try:
                names = await self._call(path, self._client.get_children_async, path, changed)
            except NoNode:
                if await self._call(path, self._client.exists_async, path, changed) is None:
                    return None
            else:
                return sorted(names)

    @asynccontextmanager
    async def _watch(
        self, read: Callable[[Callable[[WatchedEvent], None]], Awaitable[_T]]
    ) -> AsyncIterator[trio.MemoryReceiveChannel[_T]]:
        """Read and watch again at every event; kazoo fires all watches when a connection drops."""
        send, receive = trio.open_memory_channel[_T](0)

        async def follow() -> None:
            while True:
                await self.wait_connected()
                event = trio.Event()
                try:
                    value = await read(lambda _, event=event: self._soon(event.set))  # type: ignore[misc]
                except ZooKeeperUnreachable:
                    await trio.sleep(0.05)  # the state change that explains it is on its way
                    continue
                await send.send(value)
                await event.wait()

        async with background_tasks() as tasks:
            tasks.start_soon(follow)
            yield receive

    def _on_kazoo_state(self, state: str) -> None:
        """Called in kazoo's thread; returns None so that the listener stays."""
        self._soon(self._enter, SessionState[state])

    def _enter(self, state: SessionState) -> None:
        if state is SessionState.SUSPENDED and self._state is SessionState.LOST:
            return  # already given up; only a new connection changes that
        if state is self._state:
            return
        self._log_change(state)
        self._state = state
        self._suspended_since = trio.current_time() if state is SessionState.SUSPENDED else math.inf
        changed, self._state_changed = self._state_changed, trio.Event()
        changed.set()

    def _log_change(self, state: SessionState) -> None:
        """Say what changes after the first connection; a failure to get that one is raised."""
        if state is not SessionState.CONNECTED:
            event = "connection" if state is SessionState.SUSPENDED else "session"
            _LOG.warning("ZooKeeper %s: %s lost, trying again", self._hosts, event)
        elif self._was_connected:
            _LOG.info("ZooKeeper %s: connected again", self._hosts)
        self._was_connected = True

    async def expire_suspended(self) -> None:
        """Call a session lost when it has been cut off for its whole timeout.

        kazoo never says LOST while no server answers, and the server says so only when it is
        reached again, which may be never. By then the session's ephemerals are long gone, and
        somebody else may have taken over.
        """
        while True:
            changed = self._state_changed
            lost_at = self._suspended_since + self._session_timeout_ms / 1000
            with trio.move_on_at(lost_at) as limit:
                await changed.wait()
            if limit.cancelled_caught and not changed.is_set():
                # A server refuses whoever has seen a later write than it has. One that has lost its
                # data, or has got an old copy, would otherwise refuse us for as long as we live.
                self._client.last_zxid = 0
                self._enter(SessionState.LOST)


@asynccontextmanager
async def open_zookeeper(
    hosts: str,
    *,
    session_timeout_ms: int,
    start_timeout_ms: int = 10_000,
    access: ZooKeeperAccess = OPEN,
) -> AsyncIterator[ZooKeeper]:
    """Open a session with `host:port[,host:port]`; raises ZooKeeperUnreachable naming them."""
    zookeeper = ZooKeeper(hosts, session_timeout_ms, access)
    await zookeeper.start(start_timeout_ms)
    try:
        async with background_tasks() as tasks:
            tasks.start_soon(zookeeper.expire_suspended)
            yield zookeeper
    finally:
        await zookeeper.close()


def _close(client: KazooClient) -> None:
    client.stop()
    client.close()
