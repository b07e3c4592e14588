"""A read-committed consumer on a log that Apache Kafka wrote: six transactions, a seventh open."""

from pathlib import Path

import pytest

from tests.broker.log.kafkas_folders import unpack
from tests.broker.rig import Client, fetch, serving
from wire.errors import ErrorCode
from wire.messages.fetch import AbortedTransaction, FetchPartitionData
from wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.record_batch import iterate_batches, iterate_records

COMMITTED, ABORTED = ("tx1", "tx3", "tx5"), (0, 4, 8)
"""What was committed, and where what was aborted lies; each transaction has one record."""
OPEN_FROM, END = 12, 13
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
LATEST = -1


def lay_out(folder: Path) -> None:
    """Put Kafka's log where the rig looks for the first partition of `t`."""
    unpack(folder / "kafka", "clean")
    (folder / "kafka" / "tx-0" / "partition.metadata").unlink()
    (folder / "logs").mkdir()
    (folder / "kafka" / "tx-0").rename(folder / "logs" / "t-0")


async def ask(
    client: Client, offset: int, version: int, *, isolation_level: int, max_bytes: int
) -> FetchPartitionData:
    request = fetch(offset, isolation_level=isolation_level, partition_max_bytes=max_bytes)
    [topic] = (await client.ask(request, version)).responses
    [data] = topic.partitions
    assert isinstance(data, FetchPartitionData)
    assert data.error_code == ErrorCode.NONE
    return data


async def read(client: Client, version: int, max_bytes: int) -> list[str]:
    """Read as clients do: what is aborted is left out by what each answer tells of it."""
    position, values = 0, list[str]()
    while True:
        data = await ask(
            client, position, version, isolation_level=READ_COMMITTED, max_bytes=max_bytes
        )
        assert (data.high_watermark, data.last_stable_offset) == (END, OPEN_FROM)
        assert isinstance(data.records, memoryview | bytes)
        if not data.records:
            assert position == OPEN_FROM
            return values
        begins = {one.first_offset for one in data.aborted_transactions or ()}
        for header, batch in iterate_batches(data.records):
            position = header.next_offset
            if not header.is_control and header.base_offset not in begins:
                values += [(one.value or b"").decode()[:3] for one in iterate_records(batch)]


@pytest.mark.parametrize("max_bytes", [1, 200, 1_000_000])
@pytest.mark.parametrize("version", [4, 12, 17])
async def test_only_what_was_committed_is_read_up_to_where_all_is_decided(
    tmp_path: Path, version: int, max_bytes: int
) -> None:
    lay_out(tmp_path)
    async with serving(tmp_path) as rig, rig.connect() as client:
        assert tuple(await read(client, version, max_bytes)) == COMMITTED


async def test_an_answer_tells_of_what_it_carries_and_only_to_who_asks_for_it(
    tmp_path: Path,
) -> None:
    lay_out(tmp_path)
    async with serving(tmp_path) as rig, rig.connect() as client:
        everything = await ask(client, 0, 17, isolation_level=READ_COMMITTED, max_bytes=10**6)
        told = everything.aborted_transactions or ()
        assert tuple(one.first_offset for one in told) == ABORTED
        late = await ask(client, 5, 17, isolation_level=READ_COMMITTED, max_bytes=10**6)
        producers = {one.first_offset: one.producer_id for one in told}
        assert late.aborted_transactions == tuple(
            AbortedTransaction(producer_id=producers[offset], first_offset=offset)
            for offset in ABORTED[1:]
        ), "the marker of the second lies at 5"
        plain = await ask(client, 0, 17, isolation_level=READ_UNCOMMITTED, max_bytes=10**6)
        assert not plain.aborted_transactions
        assert isinstance(plain.records, memoryview | bytes)
        assert [header.base_offset for header, _ in iterate_batches(plain.records)] == [*range(END)]


@pytest.mark.parametrize(
    ("isolation_level", "end"), [(READ_UNCOMMITTED, END), (READ_COMMITTED, OPEN_FROM)]
)
async def test_the_latest_offset_is_the_last_stable_one_for_who_reads_committed(
    tmp_path: Path, isolation_level: int, end: int
) -> None:
    lay_out(tmp_path)
    async with serving(tmp_path) as rig, rig.connect() as client:
        asked = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=(ListOffsetsTopic(name="t", partitions=(asked,)),),
        )
        [topic] = (await client.ask(request, 7)).topics
        assert (topic.partitions[0].error_code, topic.partitions[0].offset) == (0, end)
