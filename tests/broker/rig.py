"""A broker without ZooKeeper for tests: real logs, real handlers, real sockets, no cluster."""

import logging
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import trio

from broker.apis.table import APIS
from broker.authorizer.acl_watch import AclWatch
from broker.config import BrokerConfig
from broker.dynamic_config import DynamicConfig
from broker.listeners import Listener
from broker.log.log_manager import LogManager
from broker.metadata_cache import BrokerEndpoint, MetadataCache, PartitionView
from broker.metrics import RequestMetrics
from broker.quotas.client_quotas import ClientQuotas
from broker.replication.in_sync import IsrRules
from broker.replication.leadership import Leadership
from broker.replication.partition import REPLICA_LAG_TIME_MAX_MS, Partition, Surroundings
from broker.replication.partitions import Partitions
from broker.security.brokers import cluster_brokers
from broker.security.credentials import ScramUsers
from broker.server import Server, bind
from broker.transactions.decisions import Producer
from wire.errors import ErrorCode
from wire.headers import RequestHeader, decode_response, encode_request
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from wire.messages.sasl_handshake import SaslHandshakeRequest
from wire.net.scram import client_final, client_first
from wire.net.security import Sasl, reveal
from wire.record_batch import Record, build_batch
from wire.schema import Request

TOPIC_ID = UUID(int=77)
NOW_MS = 1_700_000_000_000


class FixedClock:
    """A wall clock that stands still; trio's own runs."""

    def now_ms(self) -> int:
        return NOW_MS

    def wall_ms(self) -> int:
        return NOW_MS

    def age_ms(self) -> int:
        return NOW_MS

    def monotonic_ms(self) -> int:
        return int(trio.current_time() * 1000)


class NoController:
    """The controller is another broker."""

    is_active = False
    cluster = None

    async def ask(self, *_: object, **__: object) -> None:
        return None

    async def grow_topic(self, *_: object, **__: object) -> object:
        from broker.controller.controller import NOT_CONTROLLER  # noqa: PLC0415 - a cycle otherwise

        return NOT_CONTROLLER

    async def delete_topic(self, _: str) -> ErrorCode:
        return ErrorCode.NOT_CONTROLLER


class SaysTransaction:
    """A transaction's coordinator that says the same of every partition."""

    def __init__(self) -> None:
        self.error = ErrorCode.INVALID_TXN_STATE
        self.asked: list[tuple[str, Producer]] = []
        self.added: list[bool] = []
        """Of each question, whether it asked to add the partition."""

    async def verify(
        self, _: Partition, transactional_id: str, producer: Producer, *, adds: bool = False
    ) -> ErrorCode:
        self.asked.append((transactional_id, producer))
        self.added.append(adds)
        return self.error


class LoneNode:
    """What the handlers of data need; the topic `t` has two partitions led here."""

    def __init__(self, folder: Path, config: BrokerConfig) -> None:
        self.broker_id = 0
        self.config = config
        self.registered_epoch = 0
        self.clock = FixedClock()
        self.metadata = MetadataCache("cluster")
        self.dynamic = DynamicConfig(config)
        self.metrics = RequestMetrics()
        self.scram_users = ScramUsers()
        self.acls: AclWatch | None = None
        self.quotas = ClientQuotas()
        self.controller = NoController()
        self.verifier = SaysTransaction()
        self.cluster_brokers = cluster_brokers(config, config.super_users, "known to brokers")
        self.newest_controller_epoch = 1_000
        self.logs = LogManager.open(
            [folder / "logs"],
            broker_id=0,
            cluster_id="cluster",
            config_of=self.dynamic.log_config,
            now_ms=NOW_MS,
        )
        rules = IsrRules(
            lag_time_max_ms=REPLICA_LAG_TIME_MAX_MS,
            is_alive=lambda broker: broker in self.metadata.brokers,
        )
        self.partitions = Partitions(
            0, self.logs, self.dynamic.log_config, self.clock, Surroundings(rules=rules)
        )
        for index in range(2):
            self.lead(index)
        self.metadata.put_partitions("t", TOPIC_ID, [view(0), view(1), view(2, leader=1)])
        self.metadata.set_brokers(0, [BrokerEndpoint(broker_id=0, host="h", port=1)])

    def lead(self, index: int, *, leader: int = 0, epoch: int = 5) -> None:
        """Let the controller say who leads a partition of `t`."""
        assert self.partitions.take(leadership(index, leader=leader, epoch=epoch)) is ErrorCode.NONE

    def led(self, topic: str, index: int) -> Partition | ErrorCode:
        return self.partitions.led(topic, index) or self.metadata.why_not_led(topic, index)

    async def has_elected(self, controller_epoch: int) -> bool:
        return controller_epoch <= self.newest_controller_epoch

    async def is_registered_as(self, broker_epoch: int) -> bool:
        return broker_epoch == -1 or broker_epoch >= self.registered_epoch

    async def know_topics(self, _: object) -> None:
        """Have no settings of their own."""

    async def wait_metadata(self) -> None:
        """It is there from the start."""

    async def next_producer_id(self) -> int:
        return 4_000

    async def create_topic(self, _: object) -> ErrorCode:
        return ErrorCode.NONE

    async def ensure_internal_topic(self, _: str) -> ErrorCode:
        return ErrorCode.NONE


def leadership(index: int, *, leader: int = 0, epoch: int = 5) -> Leadership:
    return Leadership(
        topic="t",
        index=index,
        topic_id=TOPIC_ID,
        controller_epoch=1,
        leader=leader,
        leader_epoch=epoch,
        isr=(leader,),
        replicas=(0, 1),
        partition_epoch=0,
    )


def view(index: int, *, leader: int = 0) -> PartitionView:
    return PartitionView(
        index=index, leader=leader, leader_epoch=5, replicas=(leader,), isr=(leader,)
    )


def config(**settings: Any) -> BrokerConfig:
    return BrokerConfig(broker_id=0, zookeeper_connect="nowhere:1", **settings)


def batch(*values: bytes, **fields: Any) -> bytes:
    """Return a record batch as a producer builds it."""
    records = [
        Record(offset=index, timestamp_ms=NOW_MS, key=None, value=value, headers=())
        for index, value in enumerate(values)
    ]
    return build_batch(records, **fields)


def produce(records: bytes, *, partition: int = 0, acks: int = -1) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=1_000,
        topic_data=(
            TopicProduceData(
                name="t", partition_data=(PartitionProduceData(index=partition, records=records),)
            ),
        ),
    )


def fetch(
    offset: int, *, partition: int = 0, max_wait_ms: int = 0, epoch: int = -1, **fields: Any
) -> FetchRequest:
    """Return a Fetch of one partition of `t`; `fields` are limits, also `partition_max_bytes`."""
    limits: dict[str, Any] = {"min_bytes": 1, "max_bytes": 1_000_000, **fields}
    partition_max_bytes = limits.pop("partition_max_bytes", 1_000_000)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        topics=(
            FetchTopic(
                topic="t",
                topic_id=TOPIC_ID,
                partitions=(
                    FetchPartition(
                        partition=partition,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        current_leader_epoch=epoch,
                    ),
                ),
            ),
        ),
        **limits,
    )


def outcome(response: ProduceResponse) -> tuple[int, int]:
    """Return (error code, base offset) of the only partition."""
    (topic,) = response.responses
    (partition,) = topic.partition_responses
    return partition.error_code, partition.base_offset


@dataclass(slots=True)
class Client:
    """One raw connection, so that a test may send whatever it wants."""

    stream: trio.SocketStream
    next_correlation_id: int = 1
    asked: list[tuple[int, Request[Any], int]] = field(default_factory=list)

    async def send(
        self, request: Request[Any], version: int | None = None, client_id: str = "test"
    ) -> None:
        """Send a request without waiting for its answer."""
        await self.stream.send_all(self.frame(request, version, client_id))

    def frame(
        self, request: Request[Any], version: int | None = None, client_id: str = "test"
    ) -> bytes:
        version = request.VERSIONS.stop - 1 if version is None else version
        header = RequestHeader(
            api_key=request.API_KEY,
            api_version=version,
            correlation_id=self.next_correlation_id,
            client_id=client_id,
        )
        self.asked.append((self.next_correlation_id, request, version))
        self.next_correlation_id += 1
        return b"".join(map(bytes, encode_request(header, request)))

    async def receive(self) -> Any:
        """Return the answer to the oldest request that has none yet."""
        correlation_id, request, version = self.asked.pop(0)
        frame = await self.receive_frame()
        assert struct.unpack_from(">i", frame)[0] == correlation_id
        return decode_response(request.RESPONSE, frame, version)

    async def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", await self._exactly(4))
        return await self._exactly(size)

    async def ask(
        self, request: Request[Any], version: int | None = None, client_id: str = "test"
    ) -> Any:
        await self.send(request, version, client_id)
        return await self.receive()

    async def prove(self, proof: Sasl) -> SaslAuthenticateResponse:
        """Authenticate by SCRAM; return the last answer."""
        await self.ask(SaslHandshakeRequest(mechanism=proof.mechanism.value))
        token = client_first(proof.username, "nonce")
        first = await self.ask(SaslAuthenticateRequest(auth_bytes=token))
        final = client_final(
            proof.mechanism, proof.username, reveal(proof.password), "nonce", first.auth_bytes
        )
        last = await self.ask(SaslAuthenticateRequest(auth_bytes=final.message))
        assert isinstance(last, SaslAuthenticateResponse)
        return last

    async def wait_closed(self) -> None:
        """Wait until the broker has ended the connection without another word."""
        with trio.fail_after(60):
            try:
                assert await self.stream.receive_some() == b""
            except trio.BrokenResourceError:
                return  # reset, because it had not read all that was sent

    async def _exactly(self, size: int) -> bytes:
        received = b""
        with trio.fail_after(60):
            while len(received) < size:
                chunk = await self.stream.receive_some(size - len(received))
                assert chunk, "the broker closed the connection"
                received += chunk
        return received


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """A serving node; `connect` as often as wanted."""

    node: LoneNode
    ports: dict[str, int]

    @property
    def port(self) -> int:
        """Return the first listener's port."""
        return next(iter(self.ports.values()))

    @asynccontextmanager
    async def connect(self, listener: str = "PLAINTEXT") -> AsyncIterator[Client]:
        async with await trio.open_tcp_stream("127.0.0.1", self.ports[listener]) as stream:
            yield Client(stream)

    @asynccontextmanager
    async def connect_broker(self, listener: str = "PLAINTEXT") -> AsyncIterator[Client]:
        """Connect as another broker of the cluster does."""
        async with self.connect(listener) as client:
            answer = await client.prove(self.node.cluster_brokers.proof)
            assert answer.error_code == ErrorCode.NONE
            yield client


@asynccontextmanager
async def serving(folder: Path, **settings: Any) -> AsyncIterator[Rig]:
    """Serve the table of APIs over a socket, on logs in `folder`."""
    settings.setdefault("listeners", (Listener(name="PLAINTEXT", host="127.0.0.1", port=0),))
    node = LoneNode(folder, config(**settings))
    listeners = await bind(node.config.listeners, backlog=50)
    async with trio.open_nursery() as nursery:
        server = Server(node, APIS, node.config)  # type: ignore[arg-type]
        nursery.start_soon(server.serve, listeners)
        yield Rig(node=node, ports={one.listener.name: one.port for one in listeners})
        nursery.cancel_scope.cancel()
    node.logs.close()


def warnings(records: Sequence[logging.LogRecord]) -> list[str]:
    """Return what the connections complained about, one line each, without the peer."""
    said = [
        record.getMessage()
        for record in records
        if record.name == "broker.connection" and record.levelno >= logging.WARNING
    ]
    assert all("\n" not in line for line in said)
    return [line.partition(": ")[2] for line in said]
