"""Nodes of the witness and of a ZooKeeper that hold anything: each reader refuses them by name.

Documents are bytes, JSON of any shape, and valid ones of which one value is another.
"""

import json
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from broker.listeners import Listener
from broker.zookeeper import tree
from broker.zookeeper.tree import MalformedNode
from failover.automatic.votes import Polling, Sight, Vote
from failover.client.carried import Carried
from failover.client.position_handover import Handover, HandoverGarbled
from failover.journal.journal import JournalUnreadable, decode_journal, encode_journal
from failover.journal.steps import PromotionKind, StepName
from mirror.state.orders import How, Orders, Pause, Restart, Scope
from mirror.workers.handover import Assignment, Leaving, WorkerNode
from offset_translation.map_records import MirrorProducer
from runtime.coordination.known_ends import KnownEnd, KnownEnds
from runtime.coordination.witness import (
    ActiveSite,
    EvidenceNumber,
    FlowCommand,
    Pair,
    WitnessGarbled,
    WorkerInfo,
    assigned_partitions,
)
from runtime.untrusted_json import MAX_BYTES, read_json, unpack_json
from spark_audit.snapshot.seals import CannotTell, promotion_of
from tests.failover.journals import ended_promotion
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("orders", 0)
WRITER = MirrorProducer(producer_id=1, producer_epoch=0)
INFO = WorkerInfo(host="h", pid=1, metrics_url="http://h:1/metrics", started_ms=5)
RESTART = Restart(scope=Scope(topic="orders"), how=How.SKIP, by="me", at_ms=3)
JOURNAL = encode_journal(
    ended_promotion(PromotionKind.PLANNED, {StepName.PREFLIGHT: {"topics": {"orders": 1}}})
)
STATE = tree.LeaderAndIsr(leader=1, leader_epoch=2, isr=(1, 2), controller_epoch=3)
PACKED: Final[dict[str, tuple[Callable[[bytes], object], type[Exception], bytes]]] = {
    "member": (
        WorkerNode.decode,
        WitnessGarbled,
        WorkerNode(
            info=INFO,
            writer=WRITER,
            bytes_per_s={PLACE: 7},
            gone={PLACE: 5},
            doubted=frozenset({PLACE}),
            restarted=frozenset({RESTART}),
        ).encode(),
    ),
    "assignment": (
        Assignment.decode,
        WitnessGarbled,
        Assignment(
            version=3,
            owners={PLACE: "a"},
            leaving={TopicPartition("orders", 1): Leaving("a", 3, "b")},
            writers={"a": WRITER},
        ).encode(),
    ),
}
PACKED["assigned"] = (assigned_partitions, WitnessGarbled, PACKED["assignment"][2])
PLAIN: Final[dict[str, tuple[Callable[[bytes], object], type[Exception], bytes]]] = {
    "pair": (Pair.decode, WitnessGarbled, Pair(pair="p", clusters={"dc1": "x"}).encode()),
    "active": (ActiveSite.decode, WitnessGarbled, ActiveSite(site="dc1", epoch=1).encode()),
    "evidence number": (EvidenceNumber.decode, WitnessGarbled, EvidenceNumber(number=7).encode()),
    "vote": (
        Vote.decode,
        ValueError,
        Polling(place="dc1").vote(Sight.GONE, "silent", epoch=1, in_the_way="").encode(),
    ),
    "worker": (WorkerInfo.decode, WitnessGarbled, INFO.encode()),
    "command": (FlowCommand.decode, WitnessGarbled, FlowCommand(epoch=1, run=True).encode()),
    "orders": (
        Orders.decode,
        WitnessGarbled,
        Orders(
            pauses=(Pause(scope=Scope(topic="orders", partition=0), by="me", since_ms=1),),
            restarts=(RESTART,),
        ).encode(),
    ),
    "known ends": (
        KnownEnds.decode,
        WitnessGarbled,
        KnownEnds(at_ms=5, ends={PLACE: KnownEnd(end=1, heard_ms=2, level_ms=1)}).encode().head,
    ),
    "journal": (decode_journal, JournalUnreadable, JOURNAL),
    "audited journal": (
        lambda data: promotion_of([data], source="dc1", target="dc2"),
        CannotTell,
        JOURNAL,
    ),
    "handover": (
        Handover.decode,
        HandoverGarbled,
        Handover(epoch=1, carried=Carried(site="dc1", positions={PLACE: 5})).encode(),
    ),
    "broker": (
        lambda data: tree.decode_broker(1, data, 1),
        MalformedNode,
        tree.encode_broker([Listener(name="PLAINTEXT", host="h", port=1)], "r", 1),
    ),
    "topic": (
        lambda data: tree.decode_topic("t", data),
        MalformedNode,
        tree.encode_topic(
            tree.TopicAssignment(topic_id=UUID(int=9), replicas={0: (1, 2)}, adding={0: (2,)})
        ),
    ),
    "state": (
        lambda data: tree.decode_state("/x", data, 1),
        MalformedNode,
        tree.encode_state(STATE),
    ),
    "controller": (tree.decode_controller, MalformedNode, tree.encode_controller(1, 1)),
    "controller epoch": (tree.decode_controller_epoch, MalformedNode, b"7"),
    "config": (
        lambda data: tree.decode_config("/x", data),
        MalformedNode,
        tree.encode_config({"retention.ms": "1"}),
    ),
    "config change": (
        lambda data: tree.decode_config_change("/x", data),
        MalformedNode,
        tree.encode_config_change("topics/t"),
    ),
    "log folder": (
        lambda data: tree.decode_log_dir_failure("/x", data),
        MalformedNode,
        tree.encode_log_dir_failure(1),
    ),
    "cluster id": (tree.decode_cluster_id, MalformedNode, tree.encode_cluster_id("x")),
    "producer ids": (
        tree.decode_producer_ids,
        MalformedNode,
        tree.encode_producer_ids(tree.ProducerIdBlock(broker_id=1, first=0, last=999)),
    ),
}
ALL = PACKED | PLAIN
NODES = pytest.mark.parametrize("node", ALL)
DOCUMENTS: Final = {
    node: json.loads(zlib.decompress(valid) if node in PACKED else valid)
    for node, (_, _, valid) in ALL.items()
}
"""What each reader is to read."""

odd_values: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 2**31, 2**63, 10**400, 1e308, 0.5, "", "\ud800", "x" * 99, [], {}, [[]], [1]]
) | st.text(max_size=3)
documents: st.SearchStrategy[Any] = st.recursive(
    odd_values, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner)
)


def refuse_or_read(node: str, text: bytes) -> None:
    """Whatever else is raised fails the test."""
    decode, named, _ = ALL[node]
    with suppress(named):
        decode(zlib.compress(text) if node in PACKED else text)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to all values of a document."""
    if isinstance(value, dict):
        parts = list(value.items())
    else:
        parts = list(enumerate(value)) if isinstance(value, list) else []
    return [path, *(found for key, one in parts for found in places(one, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], other)
    return copy


@NODES
def test_what_is_written_is_read(node: str) -> None:
    decode, _, data = ALL[node]
    decode(data)


GARBAGE: Final = (
    b"",
    b"\xff",
    b"null",
    b"7",
    b"[" * 100_000,
    b"[" * 900 + b"]" * 900,
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    b"9" * 100_000,
    b"1e999",
    b"NaN",
)


@NODES
def test_garbage_is_refused_by_name(node: str) -> None:
    decode, named, _ = ALL[node]
    was_read = []
    for text in GARBAGE:
        with suppress(named):
            decode(zlib.compress(text) if node in PACKED else text)
            was_read.append(text[:40])
    assert was_read == {"controller epoch": [b"7"], "config": [b""]}.get(node, [])


@given(garbage=st.binary(), document=documents)
def test_documents_of_any_shape_are_refused_by_name(garbage: bytes, document: Any) -> None:
    """Every reader gets the same: to think of a document takes longer than to read it."""
    for node, (decode, named, _) in ALL.items():
        note(node)
        with suppress(named):
            decode(garbage)
        refuse_or_read(node, json.dumps(document).encode())


@given(place=st.integers(0, 999), odd=odd_values | documents)
def test_a_document_with_one_odd_value_is_refused_by_name(place: int, odd: Any) -> None:
    """Every reader gets the same value, each at some place of a document of its own."""
    for node, document in DOCUMENTS.items():
        note(node)
        paths = places(document)
        text = json.dumps(replaced(document, paths[place % len(paths)], odd))
        refuse_or_read(node, text.encode())
        refuse_or_read(node, text.replace("1e+308", "1e999").encode())


@pytest.mark.parametrize("node", PACKED)
def test_a_small_node_does_not_unpack_into_all_memory(node: str) -> None:
    decode, named, _ = ALL[node]
    bomb = zlib.compress(b" " * (MAX_BYTES + 1), 9)
    assert len(bomb) < 100_000
    with pytest.raises(named):
        decode(bomb)


def test_an_assignment_without_the_writer_of_a_holder_is_refused() -> None:
    data = zlib.compress(b'{"version":1,"owners":{"a":{"t":[0]}},"leaving":[],"writers":{}}')
    with pytest.raises(WitnessGarbled, match="no writer of a"):
        Assignment.decode(data)


def test_a_packed_document_that_is_cut_short_is_refused() -> None:
    assert unpack_json(zlib.compress(b"[1]")) == read_json("[1]") == [1]
    with pytest.raises(ValueError, match="ends too early"):
        unpack_json(zlib.compress(b"[1, 2, 3]" * 9)[:-4])
