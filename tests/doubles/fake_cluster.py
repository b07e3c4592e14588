"""A Kafka cluster in the test's own process: real frames, state in dictionaries, faults on demand.

`tests/wire/net/test_fake_cluster.py` asks this fake and librdkafka's mock cluster the same
questions and expects the same answers.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import UUID

import trio

from tests.doubles.fake_answers import ANSWERS
from wire.headers import RequestHeader, encode_response
from wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from wire.messages.table import APIS
from wire.net.transport import Address
from wire.request_headers import decode_request_header
from wire.schema import decode

API_VERSIONS: Final = 18


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes to send instead of an answer; then the connection is cut if `cut` says so."""

    data: bytes
    cut: bool = False


Script: TypeAlias = Callable[[RequestHeader, Any], Awaitable[Any]]
"""Takes a request and returns a response message, Raw, or None to leave it unanswered."""


@dataclass(slots=True)
class FakePartition:
    """One log: the batches as they lie there, and its leader."""

    leader: int
    leader_epoch: int = 0
    batches: list[bytes] = field(default_factory=list)
    start: int = 0
    end: int = 0
    uncommitted: int = 0
    """How many of the last offsets are not on all replicas yet. A fetch returns them too."""
    tiered: int = 0
    """What lies before is only in tiered storage. It comes all the same: a script may delay it."""


@dataclass(slots=True)
class FakeTopic:
    """One topic."""

    topic_id: UUID
    partitions: dict[int, FakePartition]


class FakeCluster:
    """State of all brokers; tests read and change it freely."""

    def __init__(self) -> None:
        self.brokers: dict[int, FakeBroker] = {}
        self.topics: dict[str, FakeTopic] = {}
        self.hidden: set[str] = set()
        """Topics that no client may see: left out, or by name refused."""
        self.offsets: defaultdict[str, dict[tuple[str, int], int]] = defaultdict(dict)
        self.metadata: defaultdict[str, dict[tuple[str, int], str]] = defaultdict(dict)
        """What groups have stored beside their offsets."""
        self.most_metadata = 4_096
        self.coordinators: dict[str, int] = {}
        self.controller = 0
        self.last_producer_id = 5_000
        self.versions: dict[int, range] = {key: APIS[key].VERSIONS for key in ANSWERS}
        self.versions[API_VERSIONS] = range(4)

    def create_topic(self, name: str, *leaders: int) -> FakeTopic:
        """Make a topic with one partition for each leader named."""
        topic = FakeTopic(
            topic_id=UUID(int=len(self.topics) + 1),
            partitions={index: FakePartition(leader) for index, leader in enumerate(leaders)},
        )
        self.topics[name] = topic
        return topic

    def coordinator(self, group: str) -> int:
        """Return who coordinates a group: what the test said, or the first broker."""
        return self.coordinators.get(group, min(self.brokers))

    @property
    def bootstrap(self) -> list[Address]:
        return [broker.address for broker in self.brokers.values()]


class FakeBroker:
    """One broker. `asked` is what it was asked, `scripts` what it answers differently, by API."""

    def __init__(self, cluster: FakeCluster, node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.address: Address = ("", 0)
        self.asked: list[tuple[RequestHeader, Any]] = []
        self.scripts: dict[int, Script] = {API_VERSIONS: self._api_versions}
        self.accepted = 0
        self._last_heard: dict[str, FakeTopic] | None = None
        self._streams: set[trio.abc.Stream] = set()
        self._listening = trio.CancelScope()

    async def listen(
        self, port: int = 0, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve on a loopback port until `stop`."""
        self._listening = trio.CancelScope()
        with self._listening:
            async with trio.open_nursery() as nursery:
                serve = partial(trio.serve_tcp, self.serve, port, host="127.0.0.1")
                (listener,) = await nursery.start(serve)
                self.address = ("127.0.0.1", listener.socket.getsockname()[1])
                task_status.started()

    @property
    def topics_heard_of(self) -> dict[str, FakeTopic]:
        """What this broker says of topics."""
        return self.cluster.topics if self._last_heard is None else self._last_heard

    def cut_off(self) -> None:
        """Hear no news from the controller any more, but go on to answer."""
        self._last_heard = deepcopy(self.cluster.topics)

    def catch_up(self) -> None:
        """Hear all the news again."""
        self._last_heard = None

    def stop(self) -> None:
        """Cut all connections and stop listening."""
        self._listening.cancel()

    async def cut_connections(self) -> None:
        """Close every connection, as a broker that dies does."""
        for stream in list(self._streams):
            await trio.aclose_forcefully(stream)

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Answer one connection's requests, one after the other."""
        self.accepted += 1
        self._streams.add(stream)
        reader = _Reader(stream)
        try:
            while (size := await reader.exactly(4)) is not None:
                frame = await reader.exactly(int.from_bytes(size))
                if frame is None:
                    return
                if not await self._answer(stream, frame):
                    return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return  # the client, or the test, has cut the connection
        finally:
            self._streams.discard(stream)
            await trio.aclose_forcefully(stream)

    async def _answer(self, stream: trio.abc.Stream, frame: bytes) -> bool:
        header, start = decode_request_header(frame)
        request: Any = decode(APIS[header.api_key], memoryview(frame)[start:], header.api_version)
        self.asked.append((header, request))
        script = self.scripts.get(header.api_key)
        if script is not None:
            answer = await script(header, request)
        else:
            answer = ANSWERS[header.api_key](self, header.api_version, request)
        if isinstance(answer, Raw):
            await stream.send_all(answer.data)
            return not answer.cut
        if answer is not None:
            await stream.send_all(framed(header, answer))
        return True

    async def _api_versions(self, header: RequestHeader, _: object) -> ApiVersionsResponse:
        known = header.api_version in self.cluster.versions[API_VERSIONS]
        return ApiVersionsResponse(
            error_code=0 if known else 35,
            api_keys=tuple(
                ApiVersion(api_key=key, min_version=versions.start, max_version=versions.stop - 1)
                for key, versions in self.cluster.versions.items()
            ),
        )


def framed(header: RequestHeader, answer: Any) -> bytes:
    """Return a whole answer to a request, size included."""
    version = header.api_version
    if header.api_key == API_VERSIONS and answer.error_code == 35:
        version = 0
    return b"".join(encode_response(header.correlation_id, answer, version))


@asynccontextmanager
async def run_fake_cluster(brokers: int = 1) -> AsyncIterator[FakeCluster]:
    """Run a cluster of brokers 0, 1, ... on free loopback ports."""
    cluster = FakeCluster()
    async with trio.open_nursery() as nursery:
        for node_id in range(brokers):
            cluster.brokers[node_id] = FakeBroker(cluster, node_id)
            await nursery.start(cluster.brokers[node_id].listen)
        yield cluster
        nursery.cancel_scope.cancel()


class _Reader:
    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._held = bytearray()

    async def exactly(self, size: int) -> bytes | None:
        while len(self._held) < size:
            received = await self._stream.receive_some()
            if not received:
                return None
            self._held += received
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken
