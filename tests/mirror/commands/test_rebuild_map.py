"""Whose a batch is, where records flow both ways and one map is lost."""

import re
from dataclasses import replace
from typing import Any

import pytest
import trio

from mirror.clusters.links import Links
from mirror.commands.positions import DONE
from mirror.commands.rebuild_map import _rebuild, is_copy, write_records
from mirror.map.map_log import MAP_SETTINGS
from offset_translation.map_records import map_topic_name, piece_start
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from runtime.configuration.config import PatternSet
from tests.doubles.fake_answers import fetch, list_offsets
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from tests.doubles.map_writers import MemoryWriters, writers_of
from tests.mirror.building import CONFIG
from tests.mirror.two_fakes import let_create, two_fakes
from wire.headers import RequestHeader
from wire.messages.fetch import FetchRequest, FetchResponse
from wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from wire.net import open_cluster
from wire.record_batch import Record, assign_offsets, build_batch, iterate_batches, parse_header

MIRROR, OTHER = 7, 8
PRODUCER: Any = {"producer_id": MIRROR, "producer_epoch": 0, "base_sequence": 0}
EVERYTHING = PatternSet(include=(re.compile(".*"),), exclude=())
LATEST, READ_COMMITTED = -1, 1


def backward() -> OffsetMap:
    """The target's own records are 30..49; the source has them from 30 on."""
    offset_map = OffsetMap.from_starts([(30, 0)], 0)
    offset_map.begin_run(Place(0), 30)
    offset_map.advance(50)
    return offset_map


@pytest.mark.parametrize(
    ("at", "producer_id", "is_transactional", "expected"),
    [
        (0, MIRROR, False, True),
        (29, OTHER, False, True),
        (30, MIRROR, False, False),
        (49, OTHER, False, False),
        (50, MIRROR, False, True),
        (50, OTHER, False, False),
        (0, MIRROR, True, False),
        (0, -1, False, False),
    ],
)
def test_what_the_other_direction_has_taken_is_the_targets_own(
    at: int, producer_id: int, is_transactional: bool, expected: bool
) -> None:
    batch = bytearray(
        build_batch(
            [Record(0, 1, None, b"v")],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=is_transactional,
        )
    )
    assign_offsets(batch, at, 0)
    assert is_copy(parse_header(batch), backward(), {MIRROR}) is expected


async def test_a_map_that_is_written_anew_is_as_safe_as_one_that_the_mirror_makes() -> None:
    async with run_fake_cluster(1) as fake:
        asked = let_create(fake)
        async with open_cluster(fake.bootstrap, client_id="test") as client:
            nobody: Any = None
            links = Links(
                source_data=nobody,
                source_groups=nobody,
                source_admin=nobody,
                target_data=client,
                target_admin=client,
            )
            record = piece_start("t", 0, source_start=5, place=Place(0))
            await write_records(CONFIG, links, MemoryWriters(), [record])
        [batch] = fake.topics[map_topic_name("dc1")].partitions[0].batches
    assert parse_header(batch).record_count == 2, "the writer's number, and what it writes"
    assert asked == MAP_SETTINGS


def hold_open(fake: FakeCluster, stable_end: int) -> None:
    """Have the cluster tell of transactions under way: committed, logs end before this offset."""
    broker = fake.brokers[0]

    async def tell(header: RequestHeader, request: ListOffsetsRequest) -> ListOffsetsResponse:
        answer: ListOffsetsResponse = list_offsets(broker, header.api_version, request)
        asked, told = request.topics[0].partitions[0], answer.topics[0]
        if asked.timestamp != LATEST or request.isolation_level != READ_COMMITTED:
            return answer
        end = replace(told.partitions[0], offset=stable_end)
        return replace(answer, topics=(replace(told, partitions=(end,)),))

    async def read(header: RequestHeader, request: FetchRequest) -> FetchResponse:
        await trio.sleep(0.01)
        answer: FetchResponse = fetch(broker, header.api_version, request)
        if request.isolation_level != READ_COMMITTED:
            return answer
        told = answer.responses[0]
        found = told.partitions[0]
        assert isinstance(found.records, memoryview | bytes)
        batches = iterate_batches(memoryview(found.records))
        stable = b"".join(batch for header, batch in batches if header.base_offset < stable_end)
        found = replace(found, last_stable_offset=stable_end, records=stable)
        return replace(answer, responses=(replace(told, partitions=(found,)),))

    broker.scripts[ListOffsetsRequest.API_KEY] = tell
    broker.scripts[FetchRequest.API_KEY] = read


async def test_a_transaction_that_is_open_on_the_source_holds_nothing_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    records = [Record(place, 5, b"k", b"%d" % place) for place in range(2)]
    open_batch = bytearray(
        build_batch([Record(0, 5, b"k", b"open")], **PRODUCER, is_transactional=True)
    )
    assign_offsets(open_batch, 2, 0)
    async with two_fakes() as (dc1, dc2, links):
        here = dc1.create_topic("t", 0).partitions[0]
        here.batches, here.end = [build_batch(records), bytes(open_batch)], 3
        there = dc2.create_topic("t", 0).partitions[0]
        there.batches, there.end = [build_batch(records, **PRODUCER)], 2
        hold_open(dc1, 2)
        with trio.fail_after(5):
            flow = replace(CONFIG, topics=EVERYTHING)
            assert await _rebuild(flow, links, writers_of(MemoryWriters()), write=False) == DONE
    assert capsys.readouterr().out.startswith("t-0: 2 mirrored records, 1 boundaries\n")
