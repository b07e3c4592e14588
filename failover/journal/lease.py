"""One controller at a time: an ephemeral node in the witness, and acting only while it is certain.

SUSPENDED (the witness is out of reach, the session may still be alive) cancels the work under way;
it is done again when the witness is back, which every step allows. LOST (the session is gone, and
the lease with it) ends this controller; another one, or the same command again, goes on.

A controller that was stopped for longer than its session lasts hears of neither in time. So the
sites are opened with `may_send`, which is asked right before every system call towards them. After
it says no, the work under way counts for nothing; it is done again if the session turns out to
live.
"""

import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import trio

from runtime.coordination.session_lease import SessionLease, SessionReplaced
from runtime.coordination.zookeeper import (
    BadVersion,
    NodeExists,
    NoNode,
    SessionState,
    ZooKeeper,
    ZooKeeperUnreachable,
)
from runtime.process.clock import uptime_ms
from runtime.process.tasks import background_tasks
from runtime.untrusted_json import LARGEST_INT32, read_json, whole_number
from wire.net import NetworkFault

T = TypeVar("T")

RECONNECTING_S: Final = 0.05


class LeaseHeld(Exception):
    """Another controller is at work; the message says where."""


class LeaseLost(Exception):
    """The session with the witness is over; nothing more may be done by this controller."""


class Lease:
    """The right to act, for as long as the session that got it lives."""

    def __init__(
        self,
        zookeeper: ZooKeeper,
        clock_ms: Callable[[], int] = uptime_ms,
        *,
        session_id: int | None = None,
    ) -> None:
        """Use hold_lease(); `session_id` is whose node it is, by default the present session's."""
        self._zookeeper = zookeeper
        self._session_id = zookeeper.session_id if session_id is None else session_id
        self._session = SessionLease(zookeeper, clock_ms, session_id=session_id)
        self._acting: set[trio.CancelScope] = set()
        self._refusals = 0

    @property
    def undelivered_ms(self) -> int:
        """Return after how long the system is to take back what a site has not acknowledged."""
        return self._session.undelivered_ms

    def may_send(self) -> bool:
        """Return whether no other controller can be at work; after a no, act() begins anew."""
        if self._session.is_held():
            return True
        self._refusals += 1
        return False

    async def act(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something that may be repeated, and do it to its end while the lease is certain.

        Raises LeaseLost.
        """
        while True:
            await self._wait_certain()
            refusals = self._refusals
            with trio.CancelScope() as scope:
                self._acting.add(scope)
                try:
                    result = await work()
                    if self._refusals == refusals:
                        return result
                except NetworkFault:
                    if self._refusals == refusals:
                        raise
                except ZooKeeperUnreachable:
                    await trio.sleep(RECONNECTING_S)  # the state that explains it is on its way
                finally:
                    self._acting.discard(scope)

    async def follow_session(self) -> None:
        """Cancel what is being done whenever the session is not certain; runs in the background."""
        async with self._zookeeper.watch_state() as states:
            async for state in states:
                if state is not SessionState.CONNECTED or not self._is_same_session():
                    for scope in self._acting:
                        scope.cancel()

    async def confirm_session(self) -> None:
        """Ask the witness again and again for the right to send; runs in the background."""
        try:
            await self._session.keep()
        except SessionReplaced:
            return  # nothing may be sent from here on, and act() says why

    def _is_same_session(self) -> bool:
        return self._zookeeper.session_id == self._session_id

    async def _wait_certain(self) -> None:
        """Return once the session is confirmed; raises LeaseLost."""
        while True:
            await self._wait_reached()
            if self._zookeeper.state is not SessionState.CONNECTED or not self._is_same_session():
                raise LeaseLost(
                    "the session with the witness was lost, so this controller stops here;"
                    " run the same command again to go on"
                )
            if self._session.is_held():
                return
            try:
                await self._session.confirm()
            except ZooKeeperUnreachable:
                await trio.sleep(RECONNECTING_S)

    async def _wait_reached(self) -> None:
        if self._zookeeper.state is SessionState.SUSPENDED:
            async with self._zookeeper.watch_state() as states:
                async for state in states:
                    if state is not SessionState.SUSPENDED:
                        break


@asynccontextmanager
async def hold_lease(
    zookeeper: ZooKeeper, path: str, *, wait_ms: int, wanted: str | None = None
) -> AsyncIterator[Lease]:
    """Take the lease at a path; one that a controller killed elsewhere has left is waited for.

    While it is waited for, the node `wanted` says so, for whoever gives way (`wait_wanted`).
    Raises LeaseHeld when somebody still holds it after `wait_ms`.
    """
    owner = {"host": socket.gethostname(), "pid": os.getpid(), "machine": _machine()}
    session_id: int | None = None
    try:
        with trio.move_on_after(wait_ms / 1000):
            session_id = await _take(zookeeper, path, json.dumps(owner).encode(), wanted)
        if session_id is None:
            raise LeaseHeld(f"another controller is at work: {await _holder(zookeeper, path)}")
        lease = Lease(zookeeper, session_id=session_id)
        async with background_tasks() as tasks:
            tasks.start_soon(lease.follow_session)
            tasks.start_soon(lease.confirm_session)
            yield lease
    finally:
        # Also one that came when it was not waited for any more: it would go with our session only.
        with trio.move_on_after(1, shield=True):
            await _give_back(zookeeper, path)


async def _take(zookeeper: ZooKeeper, path: str, owner: bytes, wanted: str | None) -> int:
    """Make the node and return the session that it goes with, or one that is over already."""
    async with AsyncExitStack() as waiting, zookeeper.watch_data(path) as values:
        async for node in values:
            if node is not None:
                if _is_of_dead_process(node.data):
                    await _remove(zookeeper, path, node.version)
                elif wanted is not None:
                    await waiting.enter_async_context(_wanting(zookeeper, wanted, owner))
                    wanted = None
                continue  # it changes when the holder leaves or its session expires
            session_id = zookeeper.session_id
            try:
                await zookeeper.create(path, owner, ephemeral=True, make_parents=True)
            except NodeExists:
                continue
            return session_id
    raise AssertionError("a watch does not end by itself")


@asynccontextmanager
async def _wanting(zookeeper: ZooKeeper, path: str, owner: bytes) -> AsyncIterator[None]:
    """Say while the block lasts that we wait; one that says so is enough."""
    try:
        with suppress(NodeExists):
            await zookeeper.create(path, owner, ephemeral=True, make_parents=True)
        yield
    finally:
        with trio.move_on_after(1, shield=True):
            await _give_back(zookeeper, path)


async def wait_wanted(zookeeper: ZooKeeper, path: str) -> None:
    """Return once somebody waits for the lease that whoever asks holds."""
    async with zookeeper.watch_data(path) as values:
        async for node in values:
            if node is not None:
                return


async def _remove(zookeeper: ZooKeeper, path: str, version: int) -> None:
    try:
        await zookeeper.delete(path, version=version)
    except (NoNode, BadVersion):
        return  # the session expired, or somebody else was faster


def _is_of_dead_process(owner: bytes) -> bool:
    """Tell whether a lease was left behind by a controller that was killed on this machine.

    Its session lives on for some seconds, which need not be waited for: where no process is, no
    session can act. Anything not certain counts as alive.
    """
    try:
        found = read_json(owner)
        pid, machine = whole_number(found["pid"], LARGEST_INT32), found["machine"]
    except (ValueError, KeyError, TypeError):
        return False
    if machine is None or machine != _machine():
        return False
    return not _is_there(pid)


def _is_there(pid: int) -> bool:
    """Tell whether a process exists; /proc may hide those of other users."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _machine() -> str | None:
    """Return what all processes share whose ids can be compared; None if that is not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


async def _give_back(zookeeper: ZooKeeper, path: str) -> None:
    """Delete our node, and no other's; without an answer it goes with the session."""
    try:
        node = await zookeeper.get(path)
        if node is not None and node.ephemeral_owner == zookeeper.session_id:
            await zookeeper.delete(path, version=node.version)
    except ZooKeeperUnreachable:
        return


async def _holder(zookeeper: ZooKeeper, path: str) -> str:
    node = await zookeeper.get(path)
    if node is None:
        return "it has just ended"
    try:
        owner = read_json(node.data)
        return f"process {owner['pid']} on {owner['host']}"
    except (ValueError, KeyError, TypeError):
        return repr(node.data[:200])
