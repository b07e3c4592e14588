"""The ends of transactions: written where a partition is led, and sent until all have them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from broker.apis import write_txn_markers
from broker.authorizer.authorizer import Authorizer, AuthorizerSettings, Rights
from broker.authorizer.verdict import Asker
from broker.context import Call, Node
from broker.log.results import AppendResult
from broker.metadata_cache import BrokerEndpoint
from broker.transactions.decisions import Producer
from broker.transactions.marking import ASKED_WITHIN_S, MarkerSender, TransactionEnd, write_markers
from broker.transactions.verification import Verifier
from tests.broker.rig import TOPIC_ID, LoneNode, batch, config, view
from wire.errors import ErrorCode
from wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from wire.net.errors import ConnectionClosed
from wire.topic_partition import TopicPartition

HERE, ELSEWHERE, GONE = TopicPartition("t", 0), TopicPartition("t", 2), TopicPartition("gone", 0)
COMMIT = TransactionEnd(producer_id=5, producer_epoch=0, is_commit=True, coordinator_epoch=3)
ABORT = replace(COMMIT, is_commit=False)


@asynccontextmanager
async def lone_node(folder: Path) -> AsyncIterator[Any]:
    node: Any = LoneNode(folder, config())
    brokers = [BrokerEndpoint(broker_id=number, host="h", port=number) for number in (0, 1)]
    node.metadata.put_partitions("t", TOPIC_ID, [view(0), view(1), view(2, leader=1)])
    node.metadata.set_brokers(0, brokers)
    yield node
    node.logs.close()


def produce(node: LoneNode, sequence: int = 0) -> Any:
    led = node.partitions.led("t", 0)
    assert led is not None
    ours = batch(
        b"a", producer_id=5, producer_epoch=0, base_sequence=sequence, is_transactional=True
    )
    assert isinstance(
        led.append_from_client(ours, acks=1, is_fenced=False, is_verified=True), AppendResult
    )
    return led


@pytest.mark.parametrize(("ended", "aborted"), [(COMMIT, 0), (ABORT, 1)])
async def test_a_marker_ends_the_transaction_where_it_is_written(
    tmp_path: Path, ended: TransactionEnd, aborted: int
) -> None:
    async with lone_node(tmp_path) as node:
        led = produce(node)
        assert led.last_stable_offset == 0
        outcomes = await write_markers(node, ended, [HERE, ELSEWHERE])
        assert outcomes == {HERE: ErrorCode.NONE, ELSEWHERE: ErrorCode.NOT_LEADER_OR_FOLLOWER}
        assert led.last_stable_offset == 2
        assert len(led.log.aborted_transactions(0, 2)) == aborted


async def test_a_coordinator_that_was_replaced_ends_nothing(tmp_path: Path) -> None:
    async with lone_node(tmp_path) as node:
        led = produce(node)
        await write_markers(node, COMMIT, [HERE])
        produce(node, 1)
        for late, error in (
            (replace(ABORT, coordinator_epoch=2), ErrorCode.TRANSACTION_COORDINATOR_FENCED),
            (replace(ABORT, producer_epoch=-1), ErrorCode.INVALID_PRODUCER_EPOCH),
        ):
            assert await write_markers(node, late, [HERE]) == {HERE: error}
        assert led.last_stable_offset == 2


def markers(**fields: Any) -> WriteTxnMarkersRequest:
    """Return what an administrator's tool sends to abort the transaction of producer 5."""
    given = {"producer_id": 5, "producer_epoch": 0, "transaction_result": False, **fields}
    given.setdefault("coordinator_epoch", 0)
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=(0,))
    return WriteTxnMarkersRequest(markers=(WritableTxnMarker(topics=(topic,), **given),))


async def asked(node: LoneNode, request: WriteTxnMarkersRequest, **rights: Any) -> int:
    call = Call(
        node=cast("Node", node), api_version=1, client_id="c", client_host="127.0.0.1", **rights
    )
    [marker] = (await write_txn_markers.handle(request, call)).markers
    return marker.topics[0].partitions[0].error_code


async def test_without_an_authorizer_everybody_may_abort_a_transaction_as_it_is_described(
    tmp_path: Path,
) -> None:
    async with lone_node(tmp_path) as node:
        led = produce(node)
        assert await asked(node, markers()) == ErrorCode.NONE
        assert led.last_stable_offset == 2
        assert await asked(node, markers()) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    "fields",
    [
        {"transaction_result": True},
        {"coordinator_epoch": 2**31 - 1},
        {"producer_epoch": 1},
        {"producer_id": 6},
    ],
)
async def test_no_client_writes_another_marker(tmp_path: Path, fields: dict[str, Any]) -> None:
    async with lone_node(tmp_path) as node:
        led = produce(node)
        assert await asked(node, markers(**fields)) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert led.last_stable_offset == 0


async def test_with_an_authorizer_the_right_to_alter_the_cluster_is_needed(tmp_path: Path) -> None:
    limited = Rights(Authorizer(AuthorizerSettings()), Asker("User:alice", "h"))
    async with lone_node(tmp_path) as node:
        produce(node)
        refused = await asked(node, markers(), rights=limited)
        assert refused == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class Peer:
    """The leader elsewhere: loses the connection once, is not ready once, then writes."""

    def __init__(self, *codes: ErrorCode) -> None:
        self.codes = [*codes]
        self.asked: list[WriteTxnMarkersRequest] = []

    async def connection(self, _: object) -> "Peer":
        return self

    async def request(self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        await trio.lowlevel.checkpoint()
        self.asked.append(request)
        if len(self.asked) == 1:
            raise ConnectionClosed("gone")
        result = WritableTxnMarkerPartitionResult(
            partition_index=ELSEWHERE.partition, error_code=self.codes.pop(0)
        )
        topic = WritableTxnMarkerTopicResult(name=ELSEWHERE.topic, partitions=(result,))
        return WriteTxnMarkersResponse(
            markers=(WritableTxnMarkerResult(producer_id=5, topics=(topic,)),)
        )


async def test_every_leader_is_asked_until_it_has_written_and_what_is_deleted_is_left_out(
    tmp_path: Path,
) -> None:
    async with lone_node(tmp_path) as node:
        led = produce(node)
        peer: Any = Peer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE)
        with trio.fail_after(10):
            assert await MarkerSender(node, peer).send(COMMIT, frozenset({HERE, ELSEWHERE, GONE}))
        assert len(peer.asked) == 3
        assert led.log_end_offset == 2, "a marker that is written is not written again"
        [marker] = peer.asked[-1].markers
        assert [(one.name, one.partition_indexes) for one in marker.topics] == [("t", (2,))]


class CutOff:
    """A leader that never answers; another broker leads by the time that it is given up."""

    def __init__(self, node: Any) -> None:
        self.node = node

    async def connection(self, _: object) -> "CutOff":
        self.node.metadata.put_partitions("t", TOPIC_ID, [view(0), view(1), view(2)])
        self.node.lead(2)
        return self

    async def request(self, *_: object, **__: object) -> object:
        await trio.sleep_forever()


async def test_a_leader_that_is_cut_off_does_not_hold_the_end_up(
    tmp_path: Path,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with lone_node(tmp_path) as node:
        cut_off: Any = CutOff(node)
        with trio.fail_after(2 * ASKED_WITHIN_S):
            assert await MarkerSender(node, cut_off).send(COMMIT, frozenset({HERE, ELSEWHERE}))
        assert node.partitions.led("t", 2).log_end_offset == 1


async def test_a_coordinator_that_is_cut_off_is_not_waited_for_long(
    tmp_path: Path,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with lone_node(tmp_path) as node:
        node.metadata.put_partitions("__transaction_state", TOPIC_ID, [view(0, leader=1)])
        cut_off: Any = CutOff(node)
        with trio.fail_after(5):
            told = await Verifier(node, cut_off).verify(
                node.partitions.led("t", 0), "x", Producer(producer_id=5, epoch=0)
            )
        assert told is ErrorCode.COORDINATOR_NOT_AVAILABLE, "which a producer hears as: try again"


async def test_who_hears_of_a_later_coordinator_gives_up(tmp_path: Path) -> None:
    async with lone_node(tmp_path) as node:
        peer: Any = Peer(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
        with trio.fail_after(10):
            assert not await MarkerSender(node, peer).send(COMMIT, frozenset({ELSEWHERE}))
