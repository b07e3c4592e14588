"""Throw frames at a real broker inside this process: no port, no accept, everything else as it is.

Who throws sees what a log only tells: which frame made a handler fail, and any task that died.
"""

import logging
import random
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from broker import node as broker_node
from broker.apis.table import APIS
from broker.config import BrokerConfig
from broker.connection import Connection, SocketLimits
from broker.context import Node
from broker.controller.topics import TopicSpec
from broker.listeners import Listener
from broker.replication.partition import Partition
from broker.server import Server
from tests.fuzz.answers import unreadable
from tests.fuzz.batches import NOW_MS
from tests.fuzz.corpus import TOPICS, Corpus
from tests.fuzz.mutations import mutated
from wire.errors import ErrorCode
from wire.record_batch import Record, build_batch

KEPT: Final = "kept"
"""A topic that no frame names."""
THROWN_AT: Final = tuple(
    TopicSpec(name=name, partitions=3, replication_factor=1) for name in sorted(set(TOPICS[:-1]))
)
REPLACED_AFTER_S: Final = 0.05
THROWERS: Final = 64
PATIENCE_S: Final = 0.02
"""For an answer; a request that waits, a member's say, is left waiting."""
EACH: Final = 4
LEADER_WITHIN_S: Final = 20


@dataclass(slots=True)
class ThrowCounts:
    """What became of the frames."""

    thrown: int = 0
    answered: int = 0
    waiting: int = 0
    faults: list[str] = field(default_factory=list)


class Listening(logging.Handler):
    """Keeps what the broker says when it has made a mistake, with the frame that it was about."""

    def __init__(self, names: Mapping[str, bytes]) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []
        self._names = names

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        frame = self._names.get(text.partition(":")[0])
        if record.exc_info:
            text += "\n" + logging.Formatter().formatException(record.exc_info)
        if frame is not None:
            text += f"\n{frame.hex()}"
        self.said.append(text)


@asynccontextmanager
async def broker_inside(
    folder: Path, zookeeper: str, patch: pytest.MonkeyPatch
) -> AsyncIterator[Node]:
    """Run a broker in this process and give its inside away."""
    seen: list[Any] = []

    class Seen(Server):
        def __init__(self, node: Node, *rest: Any) -> None:
            seen.append(node)
            super().__init__(node, *rest)

    patch.setattr(broker_node, "Server", Seen)
    config = BrokerConfig(
        broker_id=0,
        zookeeper_connect=zookeeper,
        listeners=(Listener(name="PLAINTEXT", host="127.0.0.1", port=0),),
        log_dirs=(folder,),
        auto_create_topics_enable=False,
        super_users=("User:ANONYMOUS",),  # orders are understood, not only refused
        offsets_topic_num_partitions=2,
        offsets_topic_replication_factor=1,
        group_initial_rebalance_delay_ms=0,
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(broker_node.run_broker, config)
        node: Node = seen[0]
        with trio.fail_after(LEADER_WITHIN_S):
            while not node.metadata.brokers:
                await node.metadata.wait_changed()
        yield node
        nursery.cancel_scope.cancel()


async def led(node: Node, topic: str, index: int = 0) -> Partition:
    """Return the partition once the broker leads it."""
    with trio.fail_after(LEADER_WITHIN_S):
        while not isinstance(found := node.led(topic, index), Partition):  # noqa: ASYNC110
            await trio.sleep(0.01)
        return found


async def prepare(node: Node) -> bytes:
    """Create the topics that frames name, and the one that none names; return its content."""
    for spec in (*THROWN_AT, TopicSpec(name=KEPT, partitions=1, replication_factor=1)):
        assert await node.create_topic(spec) is ErrorCode.NONE
    assert await node.ensure_internal_topic("__consumer_offsets") is ErrorCode.NONE
    partition = await led(node, KEPT)
    for number in range(100):
        record = Record(offset=0, timestamp_ms=NOW_MS, key=None, value=b"%d" % number, headers=())
        partition.append_from_client(memoryview(build_batch([record])), acks=-1, is_fenced=False)
    return partition.read(0, 2**20)


class Throwing:
    """Throws mutated frames, several at a time."""

    def __init__(self, node: Node, luck: random.Random, is_thrown: Callable[[bytes], bool]) -> None:
        self._node = node
        self._luck = luck
        self._is_thrown = is_thrown
        known = node.metadata.topics().values()
        topic_ids = tuple(view.topic_id for view in known if view.name != KEPT)
        self._frames = list(filter(is_thrown, Corpus(luck, topic_ids).frames(EACH)))
        self._outcome = ThrowCounts()
        self._names: dict[str, bytes] = {}

    async def throw(self, count: int, *, replaces_deleted: bool = True) -> ThrowCounts:
        """Throw so many; what is still unanswered in the end is given up."""
        listening = Listening(self._names)
        logging.getLogger().addHandler(listening)
        try:
            async with trio.open_nursery() as waiting:
                if replaces_deleted:
                    waiting.start_soon(self._replace_deleted)
                async with trio.open_nursery() as throwers:
                    for _ in range(THROWERS):
                        throwers.start_soon(self._throw_until, count, waiting)
                waiting.cancel_scope.cancel()
        finally:
            logging.getLogger().removeHandler(listening)
        self._outcome.faults += listening.said
        return self._outcome

    async def _replace_deleted(self) -> None:
        """Create again what a frame has deleted, so that the others find it."""
        while True:
            await trio.sleep(REPLACED_AFTER_S)
            for spec in THROWN_AT:
                await self._node.create_topic(spec)

    async def _throw_until(self, count: int, waiting: trio.Nursery) -> None:
        while self._outcome.thrown < count:
            frame = mutated(self._luck, self._frames)
            if not self._is_thrown(frame):
                continue
            self._outcome.thrown += 1
            done = trio.Event()
            waiting.start_soon(self._throw_one, f"thrown-{self._outcome.thrown}", frame, done)
            with trio.move_on_after(PATIENCE_S):
                await done.wait()

    async def _throw_one(self, name: str, frame: bytes, done: trio.Event) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            theirs.setblocking(False)
            received = bytearray()
            self._names[name] = frame
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_send_and_take, ours, frame, received)
                limits = SocketLimits(largest_request_bytes=104_857_600, idle_s=60)
                node = self._node
                await Connection(theirs, name, node, APIS, limits).serve()
                theirs.shutdown(socket.SHUT_RDWR)
        done.set()
        del self._names[name]
        self._outcome.answered += bool(received)
        wrong = unreadable(frame, bytes(received))
        if wrong is not None:
            self._outcome.faults.append(f"{wrong}: {frame.hex()}")


async def _send_and_take(peer: socket.socket, frame: bytes, received: bytearray) -> None:
    """Send a frame as a peer that then says no more, and take everything that comes back."""
    left = memoryview(frame)
    while left:
        try:
            left = left[peer.send(left) :]
        except BlockingIOError:
            await trio.lowlevel.wait_writable(peer)
        except ConnectionError:
            return  # it had enough
    peer.shutdown(socket.SHUT_WR)
    while True:
        try:
            chunk = peer.recv(65_536)
        except BlockingIOError:
            await trio.lowlevel.wait_readable(peer)
            continue
        except ConnectionError:
            return
        if not chunk:
            return
        received += chunk
