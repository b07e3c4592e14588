"""What stands still, as workers and orders tell it in the witness."""

import json
import zlib

import pytest

from mirror.state.orders import Orders, Pause, Scope
from mirror.workers.handover import WorkerNode
from offset_translation.map_records import MirrorProducer
from runtime.coordination.standstill import (
    LONGEST,
    MOST_TOLD,
    Standstill,
    read_paused,
    read_worker,
)
from runtime.coordination.witness import WitnessGarbled, WorkerInfo
from wire.topic_partition import TopicPartition

ORDERS = [TopicPartition("orders", index) for index in range(2)]
MEMBER = WorkerNode(
    info=WorkerInfo(host="h", pid=1, metrics_url="", started_ms=0),
    writer=MirrorProducer(producer_id=1, producer_epoch=0),
)


def stopped(index: int, cause: str = "failed: why") -> Standstill:
    return Standstill(
        partition=TopicPartition("orders", index), cause=cause, remedy="`mirror restart dc1-dc2`"
    )


def standing(*found: Standstill) -> WorkerNode:
    return WorkerNode(info=MEMBER.info, writer=MEMBER.writer, standing=found)


def test_a_worker_tells_what_stands_still_and_promotions_read_it() -> None:
    told = standing(stopped(0), stopped(1, "x" * 9_999)).encode()
    found = (stopped(0), stopped(1, "x" * LONGEST))
    assert read_worker(told) == WorkerNode.decode(told).standing == found


def test_a_workers_node_stays_short_whatever_stands_still() -> None:
    told = standing(*map(stopped, range(20_000))).encode()
    assert len(read_worker(told)) == MOST_TOLD


def test_workers_of_earlier_versions_tell_nothing_of_it() -> None:
    document = json.loads(zlib.decompress(MEMBER.encode()))
    del document["standing"]
    assert read_worker(zlib.compress(json.dumps(document).encode())) == ()


@pytest.mark.parametrize(
    "garbage", [b"", b"[]", b'{"standing": [[1, 2, 3, 4]]}', b'{"standing": 1}']
)
def test_garbage_is_named(garbage: bytes) -> None:
    with pytest.raises(WitnessGarbled, match="no valid member"):
        read_worker(zlib.compress(garbage))
    with pytest.raises(WitnessGarbled, match="no valid orders"):
        read_paused(garbage, "dc1-dc2", ORDERS, None)


@pytest.mark.parametrize(
    ("scope", "command", "paused"),
    [
        (None, "`mirror resume dc1-dc2`", ORDERS),
        ("orders", "`mirror resume dc1-dc2 orders`", ORDERS),
        ("orders:1", "`mirror resume dc1-dc2 orders:1`", ORDERS[1:]),
        ("others", "", []),
    ],
)
def test_what_is_paused_is_told_with_the_command_that_resumes_it(
    scope: str | None, command: str, paused: list[TopicPartition]
) -> None:
    orders = Orders(pauses=(Pause(scope=Scope.parse(scope), by="me", since_ms=1),))
    found = read_paused(orders.encode(), "dc1-dc2", ORDERS, None)
    assert [one.partition for one in found] == paused
    assert all(one.cause == "paused by me" for one in found)
    assert all(one.remedy == f"{command} lets it go on" for one in found)
    of_set = read_paused(orders.encode(), "dc1-dc2", ORDERS, "payments")
    told = f"{command.removesuffix('`')} --set payments` lets it go on"
    assert all(one.remedy == told for one in of_set)
