"""A relay in front of each server, whose connections can be cut by who made them.

A connection's maker is found by the owner of its socket (/proc), so nobody has to be configured,
and no rights are needed. That reads all sockets of the machine, which may take seconds, so it is
done where somebody is cut off from the server alone. A cut holds everything back, the ends of
connections too, as a network that is gone does; what was under way arrives when it is back.

These relays are the network, so the drill's own loop must never block: what blocks runs in threads.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import trio
from trio import socket

CHUNK_BYTES: Final = 256 * 1024
_ESTABLISHED_FILES: Final = ("/proc/net/tcp", "/proc/net/tcp6")


class Links:
    """Which connections pass; a relay asks before each step."""

    def __init__(self, room_bytes: int | None = None, *, with_children: bool = True) -> None:
        """Have relays take no more than so much of what they may not pass on; None: what comes.

        `with_children`: what a known process has started counts as that process.
        """
        self.room_bytes = room_bytes
        self.with_children = with_children
        self._cut: set[tuple[str, str]] = set()
        self._delays: dict[str, float] = {}
        self._changed = trio.Event()
        self._live: set[Link] = set()
        self.pids: dict[int, str] = {}
        """Who is who; everybody else is a bystander."""

    def cut(self, maker: str, server: str) -> None:
        """Hold everything back on what `maker` connects to `server`."""
        self._cut.add((maker, server))

    def heal(self, maker: str, server: str) -> None:
        """Let it pass again."""
        self._cut.discard((maker, server))
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def slow(self, server: str, delay_s: float) -> None:
        """Hold back each piece of what goes to a server or comes from it; 0 ends that."""
        self._delays[server] = delay_s

    def reset(self, maker: str, server: str) -> None:
        """End the connections that there are."""
        for link in list(self._live):
            if (link.maker, link.server) == (maker, server):
                link.scope.cancel()

    async def wait_open(self, link: "Link") -> None:
        """Wait until the link is not cut."""
        while self._is_cut(link):
            await self._changed.wait()

    def _is_cut(self, link: "Link") -> bool:
        """Who has made a connection is asked where it matters alone: the answer takes long."""
        return any(server == link.server and maker == link.maker for maker, server in self._cut)

    async def wait_arrived(self, server: str) -> None:
        """Wait as long as a piece is under way."""
        delay_s = self._delays.get(server, 0.0)
        if delay_s:
            await trio.sleep(delay_s)

    def join(self, link: "Link") -> None:
        self._live.add(link)

    def leave(self, link: "Link") -> None:
        self._live.discard(link)


@dataclass(eq=False, slots=True)
class Link:
    """One connection through a relay."""

    server: str
    find_maker: Callable[[], str]
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    _maker: str | None = None

    @property
    def maker(self) -> str:
        """Return who has made it; found out once, by all sockets of the machine."""
        if self._maker is None:
            self._maker = self.find_maker()
        return self._maker


async def relay(
    links: Links,
    server: str,
    address: tuple[str, int],
    *,
    bystander: str,
    port: int = 0,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Stand in front of a server until cancelled; reports the port to connect to.

    Port 0 is any free one.
    """
    listeners = await trio.open_tcp_listeners(port, host="127.0.0.1", backlog=1024)
    if links.room_bytes is not None:
        for listener in listeners:
            listener.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, links.room_bytes)
    port = int(listeners[0].socket.getsockname()[1])

    async def carry(near: trio.SocketStream) -> None:
        link = Link(server, lambda: _maker_of(near, port, links) or bystander)
        links.join(link)
        try:
            with link.scope:
                await links.wait_open(link)
                await _carry(links, link, near, address)
        finally:
            links.leave(link)
            await trio.aclose_forcefully(near)

    task_status.started(port)
    await trio.serve_listeners(carry, listeners)


async def _carry(
    links: Links, link: Link, near: trio.SocketStream, address: tuple[str, int]
) -> None:
    try:
        far = await trio.open_tcp_stream(*address)
    except OSError:
        return  # the server is down: so is the connection to its relay
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_pump, links, link, near, far, nursery.cancel_scope)
            nursery.start_soon(_pump, links, link, far, near, nursery.cancel_scope)
    finally:
        await trio.aclose_forcefully(far)


async def _pump(
    links: Links,
    link: Link,
    source: trio.SocketStream,
    target: trio.SocketStream,
    both: trio.CancelScope,
) -> None:
    try:
        while chunk := await source.receive_some(CHUNK_BYTES):
            await links.wait_arrived(link.server)
            await links.wait_open(link)
            await target.send_all(chunk)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # one side has gone; the other learns of it below
    await links.wait_open(link)
    both.cancel()


def _maker_of(near: trio.SocketStream, port: int, links: Links) -> str | None:
    """Return which of the known processes made the connection, None for anybody else."""
    try:
        peer_port = int(near.socket.getpeername()[1])
    except OSError:
        return None  # it has gone again
    inode = _inode_of(peer_port, port)
    if inode is None:
        return None
    wanted = f"socket:[{inode}]"
    holds = _family_holds if links.with_children else _holds
    return next((name for pid, name in links.pids.items() if holds(pid, wanted)), None)


def children_of(pid: int) -> list[int]:
    """Return the processes that this one has started, by whichever of its threads."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except OSError:
        return found  # it has ended meanwhile
    return found


def _family_holds(pid: int, wanted: str) -> bool:
    return _holds(pid, wanted) or any(_holds(child, wanted) for child in children_of(pid))


def _inode_of(local_port: int, remote_port: int) -> str | None:
    for file in _ESTABLISHED_FILES:
        for line in Path(file).read_text().splitlines()[1:]:
            fields = line.split()
            ports = [int(end.rpartition(":")[2], 16) for end in fields[1:3]]
            if ports == [local_port, remote_port]:
                return fields[9]
    return None


def _holds(pid: int, wanted: str) -> bool:
    try:
        held = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False  # it ended meanwhile
    return any(_leads_to(one) == wanted for one in held)


def _leads_to(entry: Path) -> str | None:
    try:
        return str(entry.readlink())
    except OSError:
        return None  # it was closed meanwhile
