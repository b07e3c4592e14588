"""A leader and a follower as clients and other brokers see them, over real sockets."""

import errno
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from broker import connection
from broker.metadata_cache import BrokerEndpoint
from broker.replication.preferred import RACK_AWARE
from broker.sending import COPIED_BYTES
from tests.broker.rig import (
    NOW_MS,
    Client,
    Rig,
    batch,
    fetch,
    leadership,
    outcome,
    produce,
    serving,
)
from wire.errors import ErrorCode
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.messages.fetch import FetchPartitionData, FetchRequest, ReplicaState
from wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from wire.record_batch import HEADER_BYTES, iterate_batches

FOLLOWER = 1
LATEST = -1


def lead_with_follower(rig: Rig, *, epoch: int = 6, isr: tuple[int, ...] = (0, FOLLOWER)) -> None:
    taken = rig.node.partitions.take(replace(leadership(0, epoch=epoch), isr=isr))
    assert taken is ErrorCode.NONE


def by_follower(offset: int, *, last_epoch: int = -1, **fields: Any) -> FetchRequest:
    """Return a Fetch as the follower sends it."""
    request = fetch(offset, replica_state=ReplicaState(replica_id=FOLLOWER), **fields)
    (topic,) = request.topics
    (asked,) = topic.partitions
    asked = replace(asked, last_fetched_epoch=last_epoch)
    return replace(request, topics=(replace(topic, partitions=(asked,)),))


def only(response: Any) -> FetchPartitionData:
    (topic,) = response.responses
    (partition,) = topic.partitions
    assert isinstance(partition, FetchPartitionData)
    return partition


def offsets(data: FetchPartitionData) -> list[int]:
    assert isinstance(data.records, bytes | memoryview)
    return [header.base_offset for header, _ in iterate_batches(data.records)]


async def latest(client: Client, replica_id: int = -1) -> tuple[int, int]:
    asked = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    answer = await client.ask(
        ListOffsetsRequest(
            replica_id=replica_id, topics=(ListOffsetsTopic(name="t", partitions=(asked,)),)
        )
    )
    (found,) = answer.topics[0].partitions
    return found.error_code, found.offset


async def test_acks_all_waits_for_the_follower_and_later_requests_begin_meanwhile(
    tmp_path: Path,
) -> None:
    async with (
        serving(tmp_path) as rig,
        rig.connect() as producer,
        rig.connect_broker() as follower,
        rig.connect() as consumer,
    ):
        lead_with_follower(rig)
        for value in (b"a", b"b"):
            await producer.send(produce(batch(value)))
        await producer.send(fetch(0))
        await follower.send(by_follower(0, max_wait_ms=5_000, min_bytes=2 * len(batch(b"a"))))
        assert offsets(only(await follower.receive())) == [0, 1], "both were appended at once"
        assert only(await consumer.ask(fetch(0))).records == b""
        assert only(await follower.ask(by_follower(1))).high_watermark == 1
        assert outcome(await producer.receive()) == (ErrorCode.NONE, 0)
        await follower.ask(by_follower(2))
        assert outcome(await producer.receive()) == (ErrorCode.NONE, 1)
        assert offsets(only(await producer.receive())) == [0, 1]


async def test_a_leader_asks_for_a_follower_in_the_life_in_which_it_fetched(tmp_path: Path) -> None:
    told = ReplicaState(replica_id=FOLLOWER, replica_epoch=101)
    async with serving(tmp_path) as rig, rig.connect_broker() as follower:
        brokers = [BrokerEndpoint(broker_id=number, host="h", port=1) for number in range(2)]
        rig.node.metadata.set_brokers(0, brokers)
        lead_with_follower(rig, isr=(0,))
        await follower.ask(replace(by_follower(0), replica_state=told))
        partition = rig.node.partitions.led("t", 0)
        assert partition is not None
        assert partition.isr_change is not None
        assert dict(partition.isr_change.broker_epochs) == {FOLLOWER: 101}


async def test_a_slow_follower_does_not_stop_a_producer_until_very_many_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are appended while none is committed, and what is committed is answered in order."""
    monkeypatch.setattr(connection, "MOST_AWAITED", 150)
    async with (
        serving(tmp_path) as rig,
        rig.connect() as producer,
        rig.connect_broker() as follower,
    ):
        lead_with_follower(rig)
        asked = [producer.frame(produce(batch(b"%d" % number))) for number in range(200)]
        await producer.stream.send_all(b"".join(asked))
        size = len(batch(b"1"))
        await follower.send(by_follower(0, max_wait_ms=5_000, min_bytes=100 * size))
        assert only(await follower.receive()).high_watermark == 0
        partition = rig.node.partitions.led("t", 0)
        assert partition is not None
        while partition.log_end_offset < 150:
            await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert partition.log_end_offset == 150, "the others wait for room"
        await follower.ask(by_follower(70))
        assert [outcome(await producer.receive())[1] for _ in range(70)] == [*range(70)]
        while partition.log_end_offset < 200:
            await trio.lowlevel.checkpoint()
        await follower.ask(by_follower(200))
        assert [outcome(await producer.receive())[1] for _ in range(130)] == [*range(70, 200)]


@pytest.mark.parametrize("size", [1, COPIED_BYTES - 500, COPIED_BYTES, 5 * COPIED_BYTES])
async def test_small_and_large_pieces_of_several_partitions_come_whole(
    tmp_path: Path, size: int
) -> None:
    """Those that are copied, and those that go from the file to the socket, also in one answer."""
    async with serving(tmp_path) as rig, rig.connect_broker() as client:
        sent = [batch(bytes([65 + index]) * length) for index, length in enumerate((size, 100))]
        for index, records in enumerate(sent):
            await client.ask(produce(records, partition=index))
        asked = fetch(0)
        (topic,) = asked.topics
        both = tuple(replace(topic.partitions[0], partition=index) for index in (0, 1))
        answer = await client.ask(replace(asked, topics=(replace(topic, partitions=both),)))
        for found, records in zip(answer.responses[0].partitions, sent, strict=True):
            assert bytes(found.records)[HEADER_BYTES:] == records[HEADER_BYTES:]


async def test_an_unknown_version_of_api_versions_is_answered_in_its_turn(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as rig,
        rig.connect() as producer,
        rig.connect_broker() as follower,
    ):
        lead_with_follower(rig)
        await producer.send(produce(batch(b"a")))
        asked = struct.pack(">hhih", ApiVersionsRequest.API_KEY, 99, 77, -1) + b"\0"
        await producer.stream.send_all(struct.pack(">i", len(asked)) + asked)
        await follower.ask(by_follower(0, max_wait_ms=5_000))
        await follower.ask(by_follower(1))
        assert outcome(await producer.receive()) == (ErrorCode.NONE, 0)
        answer = await producer.receive_frame()
        assert struct.unpack_from(">ih", answer) == (77, ErrorCode.UNSUPPORTED_VERSION)


async def test_a_follower_that_waits_is_given_a_record_at_once(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as rig,
        rig.connect() as producer,
        rig.connect_broker() as follower,
    ):
        lead_with_follower(rig)
        await follower.send(by_follower(0, max_wait_ms=600_000))
        await producer.send(produce(batch(b"a"), acks=1))
        with trio.fail_after(60):
            assert offsets(only(await follower.receive())) == [0]


async def test_a_producer_that_waits_learns_that_leadership_was_lost(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as producer, rig.connect_broker() as other:
        lead_with_follower(rig)
        await producer.send(produce(batch(b"a")))
        assert await latest(other, FOLLOWER) == (ErrorCode.NONE, 1)
        rig.node.lead(0, leader=FOLLOWER, epoch=7)
        answered = outcome(await producer.receive())
        assert answered == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_a_batch_that_the_next_leader_cut_off_is_not_acknowledged_by_what_lies_there_now(
    tmp_path: Path,
) -> None:
    """Its answer waits behind another one while this broker becomes a follower, and catches up."""
    async with (
        serving(tmp_path) as rig,
        rig.connect() as producer,
        rig.connect_broker() as follower,
    ):
        lead_with_follower(rig)
        both = replace(leadership(1, epoch=6), isr=(0, FOLLOWER))
        assert rig.node.partitions.take(both) is ErrorCode.NONE
        await producer.send(produce(batch(b"waits")))
        await producer.send(produce(batch(b"lost"), partition=1))
        cut = rig.node.partitions.led("t", 1)
        assert cut is not None
        while not cut.log_end_offset:
            await trio.lowlevel.checkpoint()
        rig.node.lead(1, leader=FOLLOWER, epoch=7)
        cut.truncate_to(0, now_ms=NOW_MS)
        cut.append_fetched(batch(b"other"), high_watermark=1, log_start_offset=0, now_ms=NOW_MS)
        await follower.ask(by_follower(1))
        assert outcome(await producer.receive()) == (ErrorCode.NONE, 0)
        assert outcome(await producer.receive()) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_a_follower_with_another_history_is_told_where_it_parts(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect_broker() as client:
        await client.ask(produce(batch(b"a"), acks=1))  # epoch 5, offset 0
        lead_with_follower(rig, epoch=8)
        data = only(await client.ask(by_follower(3, last_epoch=6)))
        assert (data.error_code, data.records) == (ErrorCode.NONE, b"")
        assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (5, 1)
        beyond = only(await client.ask(by_follower(0, last_epoch=9)))
        assert beyond.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_stranger_is_not_taken_for_a_replica(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect_broker() as client:
        lead_with_follower(rig)
        stranger = replace(by_follower(0), replica_state=ReplicaState(replica_id=9))
        data = only(await client.ask(stranger))
        assert data.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


async def test_a_new_leader_tells_no_end_before_it_knows_what_is_committed(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect_broker() as client:
        lead_with_follower(rig)
        await client.ask(produce(batch(b"a"), acks=1))
        lead_with_follower(rig, epoch=7)
        assert await latest(client) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
        assert await latest(client, FOLLOWER) == (ErrorCode.NONE, 1)
        await client.ask(by_follower(1, epoch=7))
        assert await latest(client) == (ErrorCode.NONE, 1)


async def test_a_follower_serves_consumers_up_to_its_high_watermark(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect_broker() as client:
        for value in (b"a", b"b"):
            await client.ask(produce(batch(value), acks=1))
        stored = only(await client.ask(fetch(0))).records
        rig.node.lead(0, leader=FOLLOWER, epoch=7)
        partition = rig.node.partitions.get("t", 0)
        assert partition is not None
        partition.truncate_to(0, now_ms=0)
        assert isinstance(stored, bytes | memoryview)
        partition.append_fetched(stored, high_watermark=1, log_start_offset=0, now_ms=0)
        assert offsets(only(await client.ask(fetch(0)))) == [0]
        old = only(await client.ask(fetch(0), version=10))
        assert old.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_consumer_is_sent_to_the_replica_in_its_rack(tmp_path: Path) -> None:
    settings = {"replica_selector_class": RACK_AWARE}
    async with serving(tmp_path, **settings) as rig, rig.connect_broker() as client:
        lead_with_follower(rig)
        rig.node.metadata.set_brokers(
            0,
            [
                BrokerEndpoint(broker_id=0, host="h", port=1, rack="here"),
                BrokerEndpoint(broker_id=FOLLOWER, host="h", port=2, rack="there"),
            ],
        )
        await client.ask(by_follower(0))
        near = only(await client.ask(fetch(0, rack_id="there")))
        assert (near.preferred_read_replica, near.records) == (FOLLOWER, b"")
        assert only(await client.ask(fetch(0, rack_id="here"))).preferred_read_replica == -1
        assert only(await client.ask(fetch(0, rack_id="nowhere"))).preferred_read_replica == -1


def deletion(offset: int, *, timeout_ms: int = 60_000) -> DeleteRecordsRequest:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    return DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name="t", partitions=(partition,)),), timeout_ms=timeout_ms
    )


def deleted(answer: Any) -> tuple[int, int]:
    (topic,) = answer.topics
    (partition,) = topic.partitions
    return partition.error_code, partition.low_watermark


def with_log_start(request: FetchRequest, log_start_offset: int) -> FetchRequest:
    (topic,) = request.topics
    (asked,) = topic.partitions
    asked = replace(asked, log_start_offset=log_start_offset)
    return replace(request, topics=(replace(topic, partitions=(asked,)),))


async def test_records_are_deleted_when_the_living_followers_have_moved_their_logs_start_too(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as admin, rig.connect_broker() as follower:
        rig.node.metadata.set_brokers(
            0, [BrokerEndpoint(broker_id=id_, host="h", port=1) for id_ in (0, FOLLOWER)]
        )
        lead_with_follower(rig)
        await admin.send(produce(batch(b"a", b"b", b"c")))
        await follower.ask(with_log_start(by_follower(0, max_wait_ms=5_000), 0))
        await follower.ask(with_log_start(by_follower(3), 0))
        assert outcome(await admin.receive()) == (ErrorCode.NONE, 0)
        late = await admin.ask(deletion(1, timeout_ms=0))
        assert deleted(late) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        assert only(await follower.ask(by_follower(3))).log_start_offset == 1
        await admin.send(deletion(2))
        await follower.ask(with_log_start(by_follower(3), 1))
        await follower.ask(with_log_start(by_follower(3), 2))
        assert deleted(await admin.receive()) == (ErrorCode.NONE, 2)
        await admin.send(deletion(-1))
        await follower.ask(with_log_start(by_follower(3), 2))
        rig.node.metadata.set_brokers(0, [BrokerEndpoint(broker_id=0, host="h", port=1)])
        rig.node.partitions.brokers_changed()
        assert deleted(await admin.receive()) == (ErrorCode.NONE, 3), "the dead are not waited for"


async def test_who_deletes_records_learns_that_leadership_was_lost_meanwhile(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as admin, rig.connect_broker() as follower:
        rig.node.metadata.set_brokers(
            0, [BrokerEndpoint(broker_id=id_, host="h", port=1) for id_ in (0, FOLLOWER)]
        )
        lead_with_follower(rig, isr=(0,))
        await admin.ask(produce(batch(b"a"), acks=1))
        await follower.ask(with_log_start(by_follower(0, max_wait_ms=5_000), 0))
        await follower.ask(with_log_start(by_follower(1), 0))
        await admin.send(deletion(1))
        assert only(await follower.ask(with_log_start(by_follower(1), 0))).log_start_offset == 1
        rig.node.lead(0, leader=FOLLOWER, epoch=7)
        assert deleted(await admin.receive()) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_who_waits_for_followers_learns_that_the_disk_has_failed(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as rig,
        rig.connect() as admin,
        rig.connect() as producer,
        rig.connect_broker() as follower,
    ):
        rig.node.metadata.set_brokers(
            0, [BrokerEndpoint(broker_id=id_, host="h", port=1) for id_ in (0, FOLLOWER)]
        )
        lead_with_follower(rig, isr=(0,))
        await admin.ask(produce(batch(b"a"), acks=1))
        await follower.ask(with_log_start(by_follower(1), 0))
        await admin.send(deletion(1))
        await producer.send(produce(batch(b"b")))
        held = rig.node.partitions.get("t", 0)
        assert held is not None
        while held.log_start_offset < 1 or held.log_end_offset < 2:
            await trio.lowlevel.checkpoint()
        rig.node.logs.blame(held.log, OSError(errno.EIO, "planted"))
        rig.node.partitions.folders_failed()
        with trio.fail_after(5):
            assert deleted(await admin.receive()) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
            assert outcome(await producer.receive()) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


async def test_a_throttled_follower_out_of_sync_waits_while_too_much_went(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as rig,
        rig.connect() as producer,
        rig.connect_broker() as follower,
    ):
        lead_with_follower(rig, isr=(0,))
        await producer.ask(produce(batch(b"a"), acks=1))
        rig.node.dynamic.set_topic("t", {"leader.replication.throttled.replicas": "0:0"})
        rig.node.partitions.reconfigure("t")
        quota = rig.node.partitions.quotas.leader
        quota.rate = 1
        assert offsets(only(await follower.ask(by_follower(0)))) == [0], "nothing went before"
        assert quota.is_exceeded(rig.node.clock.monotonic_ms())
        held_back = only(await follower.ask(by_follower(0)))
        assert (held_back.error_code, held_back.records) == (ErrorCode.NONE, b"")
        assert offsets(only(await producer.ask(fetch(0)))) == [0], "consumers are not held back"
        lead_with_follower(rig, epoch=7)
        asked = by_follower(0, epoch=7)
        assert offsets(only(await follower.ask(asked))) == [0], "nor is who is in sync"
