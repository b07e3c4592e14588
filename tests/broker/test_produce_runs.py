"""Plain Produce requests that come together: the same answers and logs as one by one."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.authorizer.authorizer import Rights
from broker.log.results import StorageError
from broker.log.segment import RunBatch
from broker.log.segments import SegmentList
from broker.quotas.entity import PRODUCER_RATE, QuotaEntity
from broker.replication.partition import Partition
from tests.broker.rig import Client, batch, leadership, outcome, produce, serving
from wire.errors import ErrorCode
from wire.hot.produce_run import PlainBatch
from wire.kernel.chosen import in_python, walker
from wire.messages.metadata import MetadataRequest
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

REQUESTS = 150
SETTINGS: Mapping[str, Any] = {
    "log_segment_bytes": 6_000,
    "log_index_interval_bytes": 200,
    "message_max_bytes": 1_000,
}


class Producers:
    """Requests of all kinds, most of them plain; all luck is the seed's."""

    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)
        self.sequences = {(producer, index): 0 for producer in (7, 8) for index in (0, 1)}
        self.epochs = {7: 0, 8: 0}
        self.producer = -1
        self.sent: list[bytes] = []

    def records(self, index: int) -> bytes:
        """Return a batch that mostly comes next."""
        values = [
            self.luck.randbytes(self.luck.randrange(60))
            for _ in range(self.luck.choice((1, 1, 1, 3)))
        ]
        producer = self.producer
        if producer < 0:
            return batch(*values)
        if self.luck.random() < 0.02:
            self.epochs[producer] += 1
            self.sequences |= {(producer, 0): 0, (producer, 1): 0}
        sequence = self.sequences[producer, index]
        if self.luck.random() < 0.02:
            sequence += self.luck.choice((-1, 1))
        else:
            self.sequences[producer, index] += len(values)
        return batch(
            *values,
            producer_id=producer,
            producer_epoch=self.epochs[producer],
            base_sequence=max(sequence, 0),
        )

    def odd_records(self, index: int) -> bytes:
        """Return a batch that is refused, repeated, or large."""
        whole = self.records(index)
        return self.luck.choice(
            (
                b"",
                whole[:-1],
                whole[:-1] + bytes([whole[-1] ^ 1]),
                whole + whole,
                batch(bytes(2_000)),
                batch(
                    b"t", is_transactional=True, producer_id=9, producer_epoch=0, base_sequence=0
                ),
                self.luck.choice(self.sent or [whole]),
            )
        )

    def request(self) -> tuple[ProduceRequest, int, str]:
        """Return a request with the version and the client id."""
        if self.luck.random() < 0.1:
            self.producer = self.luck.choice((-1, 7, 8))
        indexes = self.luck.choice(([0], [0], [1], [0, 1], [1, 0, 1], [2], [7]))
        if self.luck.random() < 0.9:
            indexes = [one for one in indexes if one < 2] or [0]
        data = []
        for index in indexes:
            is_odd = self.luck.random() < 0.03
            known = min(index, 1)
            records = self.odd_records(known) if is_odd else self.records(known)
            self.sent = [*self.sent[-8:], records]
            data.append(PartitionProduceData(index=index, records=records))
        acks = self.luck.choice((-1, -1, -1, 1)) if self.luck.random() < 0.1 else -1
        request = replace(
            produce(b"", acks=acks),
            topic_data=(TopicProduceData(name="t", partition_data=tuple(data)),),
        )
        version = self.luck.choice((3, 8, 11)) if self.luck.random() < 0.03 else 9
        return request, version, "other" if self.luck.random() < 0.03 else "test"


async def answers(
    folder: Path, seed: int, reader: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[bytes], dict[str, bytes]]:
    """Return the answers to pipelined requests, and all files of the logs behind them."""
    python = in_python("a test")
    ways = {
        "native": walker(may_be_native=True),
        "python": python,
        "one by one": python._replace(read_run=lambda *_: None),
    }
    monkeypatch.setattr("broker.server.walker", lambda **_: ways[reader])
    producers = Producers(seed)
    told: list[bytes] = []
    async with serving(folder, **SETTINGS) as rig, rig.connect() as client:
        frames = [client.frame(*producers.request()) for _ in range(REQUESTS)]
        frames.insert(REQUESTS // 2, client.frame(MetadataRequest(topics=())))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.stream.send_all, b"".join(frames))
            told += [await client.receive_frame() for _ in frames]
        counted = rig.node.metrics.records_in, rig.node.metrics.record_bytes_in
        measured = {name: sum(one.counts) for name, one in rig.node.metrics.latency.items()}
        told.append(repr((counted, measured)).encode())
    logs = {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.suffix in {".log", ".index", ".timeindex", ".snapshot"} or "epoch" in file.name
    }
    return told, logs


@pytest.mark.parametrize("seed", [1, 2])
async def test_what_comes_together_is_answered_and_written_as_what_comes_alone(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = ran(monkeypatch)
    alone = await answers(tmp_path / "alone", seed, "one by one", monkeypatch)
    assert not runs
    native = await answers(tmp_path / "native", seed, "native", monkeypatch)
    assert sum(runs) > REQUESTS // 10
    assert max(runs) > 1
    assert native == alone
    runs.clear()
    assert await answers(tmp_path / "python", seed, "python", monkeypatch) == alone
    assert runs


def ran(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how long the runs are that partitions append, as they come."""
    runs: list[int] = []
    append_run = Partition.append_run

    def counted(self: Partition, view: memoryview, run: list[PlainBatch]) -> Sequence[int]:
        runs.append(len(run))
        return append_run(self, view, run)

    monkeypatch.setattr(Partition, "append_run", counted)
    return runs


def plain(client: Client, count: int, **fields: Any) -> bytes:
    """Return the frames of plain requests, one behind the other."""
    return b"".join(client.frame(produce(batch(b"v"), **fields), 9) for _ in range(count))


class Growth:
    """Wakes who waits for a partition's log to grow."""

    def __init__(self) -> None:
        self.event = trio.Event()

    def grown(self) -> None:
        self.event.set()

    def committed(self) -> None:
        """Sleep on."""

    def changed(self) -> None:
        """Sleep on."""

    async def wait(self, partition: Partition, end: int) -> None:
        while partition.log_end_offset < end:
            await self.event.wait()
            self.event = trio.Event()


async def test_answers_wait_for_the_replicas_in_the_order_of_the_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = ran(monkeypatch)
    async with serving(tmp_path) as rig, rig.connect() as client:
        await client.ask(produce(batch(b"v")), 9)
        both = replace(leadership(0, epoch=6), isr=(0, 1))
        assert rig.node.partitions.take(both) is ErrorCode.NONE
        partition = rig.node.partitions.led("t", 0)
        assert partition is not None
        growth = Growth()
        partition.watch(growth)
        await client.stream.send_all(plain(client, 3) + client.frame(MetadataRequest(topics=())))
        with trio.fail_after(60):
            await growth.wait(partition, 4)
        partition.fetched_by(1, 3, 0)
        assert [outcome(await client.receive()) for _ in range(2)] == [(0, 1), (0, 2)]
        with trio.move_on_after(0.05) as early:
            await client.receive_frame()
        assert early.cancelled_caught
        partition.fetched_by(1, 4, 0)
        assert outcome(await client.receive()) == (0, 3)
        await client.receive()
    assert sum(runs) == 3


@pytest.mark.parametrize(
    ("failing", "offsets"), [(1, [2, -1]), (2, [-1, -1])], ids=["the last", "the first"]
)
async def test_a_disk_that_fails_fails_its_partition_and_what_comes_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int, offsets: list[int]
) -> None:
    """All of the folder is offline from then on: what was written there must not count."""
    append_run = SegmentList.append_run

    def fail(self: SegmentList, run: Sequence[RunBatch], *, interval_bytes: int) -> None:
        if run[0].base_offset == failing:
            raise OSError(ENOSPC, "No space left on device")
        append_run(self, run, interval_bytes=interval_bytes)

    async with serving(tmp_path) as rig, rig.connect() as client:
        await client.ask(produce(batch(b"v", b"v")), 9)
        await client.ask(produce(batch(b"v"), partition=1), 9)
        monkeypatch.setattr(SegmentList, "append_run", fail)
        data = [PartitionProduceData(index=index, records=batch(b"v")) for index in (0, 1)]
        request = replace(
            produce(b""), topic_data=(TopicProduceData(name="t", partition_data=tuple(data)),)
        )
        answer = await client.ask(request, 9)
        answers = answer.responses[0].partition_responses
        assert [one.base_offset for one in answers] == offsets
        for one in answers:
            failed = one.base_offset < 0
            assert one.error_code == (ErrorCode.KAFKA_STORAGE_ERROR if failed else ErrorCode.NONE)
            assert ("No space left" in (one.error_message or "")) == failed
        assert (
            outcome(await client.ask(produce(batch(b"v")), 9))[0] == ErrorCode.KAFKA_STORAGE_ERROR
        )


async def test_without_acks_nothing_is_answered_and_a_failure_ends_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = ran(monkeypatch)
    async with serving(tmp_path) as rig, rig.connect() as client:
        await client.ask(produce(batch(b"v")), 9)
        await client.stream.send_all(plain(client, 3, acks=0))
        client.asked.clear()
        assert outcome(await client.ask(produce(batch(b"v")), 9)) == (0, 4)
        assert sum(runs) >= 3
        failed = StorageError(tmp_path, "the disk is gone")

        def fail(*_: object) -> Sequence[int]:
            raise failed

        monkeypatch.setattr(Partition, "append_run", fail)
        await client.stream.send_all(plain(client, 1, acks=0))
        await client.wait_closed()


@pytest.mark.parametrize("who", ["quota", "fence", "rights"])
async def test_requests_of_clients_with_limits_are_looked_at_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    runs = ran(monkeypatch)
    async with serving(tmp_path) as rig, rig.connect() as client:
        if who == "quota":
            rig.node.quotas.table.put(QuotaEntity(client="test"), {PRODUCER_RATE: "1000000"})
        elif who == "fence":
            rig.node.dynamic.set_default_broker({"write.fence.topics": "t"})
        else:
            monkeypatch.setattr(Rights, "are_limited", property(lambda _: True))
        await client.stream.send_all(plain(client, 5))
        codes = [outcome(await client.receive())[0] for _ in range(5)]
    refused = {"quota": ErrorCode.NONE, "fence": ErrorCode.NOT_ENOUGH_REPLICAS}
    assert set(codes) == {refused.get(who, ErrorCode.NONE)}
    assert not runs
