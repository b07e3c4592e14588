"""What is known of the other direction, when its map is made again under a running daemon."""

from dataclasses import replace
from uuid import UUID

import pytest

from mirror.map.reverse_map import ReverseMapReader
from mirror.state.reverse_flow import ReverseFlow
from offset_translation.map_records import (
    MirrorProducer,
    map_topic_name,
    mirror_producer,
    piece_start,
)
from offset_translation.runs import Place
from runtime.configuration.topic_names import Renames
from tests.doubles.fake_cluster import FakeCluster
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from tests.mirror.two_fakes import two_fakes
from wire.net import NetworkFault
from wire.record_batch import Record, assign_offsets, build_batch

MAP = map_topic_name("dc2")


def announce(dc1: FakeCluster, *producer_ids: int, writer: int = -1) -> None:
    """Let mirrors into dc1 say who they are, and where their first piece begins."""
    log = dc1.topics[MAP].partitions[0]
    for producer_id in producer_ids:
        ours = MirrorProducer(producer_id=producer_id, producer_epoch=0)
        piece = piece_start("t", 0, source_start=producer_id, place=Place(0))
        records = [
            Record(at, 0, *record) for at, record in enumerate([mirror_producer(ours), piece])
        ]
        batch = bytearray(build_batch(records, producer_id=writer))
        assign_offsets(batch, log.end, 0)
        log.batches.append(bytes(batch))
        log.end += len(records)


def batch_of(writer: int, offset: int) -> bytes:
    batch = bytearray(build_batch([Record(0, 0, b"k", b"v")], producer_id=writer))
    assign_offsets(batch, offset, 0)
    return bytes(batch)


@pytest.mark.parametrize(
    ("given", "arrived"), [({}, {"t"}), ({"ours": "t"}, {"ours"}), ({"ours": "x", "t": "y"}, set())]
)
async def test_what_came_back_is_known_by_the_names_of_the_source(
    given: dict[str, str], arrived: set[str]
) -> None:
    async with two_fakes() as (dc1, _, links):
        reverse = ReverseFlow()
        config = replace(CONFIG, renames=Renames(given))
        reader = ReverseMapReader(config, reverse, links, MemoryWriters())
        dc1.create_topic(MAP, 0)
        announce(dc1, 7)
        await reader.catch_up()
        assert {one.topic for one in reverse.arrived.maps} == arrived
        assert reverse.former_names == ({"t"} if not arrived else set())
        assert reverse.loop_ids == {7}


async def test_a_flow_without_a_way_back_needs_no_right_to_see_its_map() -> None:
    """Apache Kafka says the same of a topic that is not there to whoever may not see it."""
    async with two_fakes() as (dc1, _, links):
        reverse = ReverseFlow()
        alone = replace(CONFIG, has_way_back=False)
        dc1.hidden.add(MAP)
        assert not reverse.known_part(memoryview(batch_of(7, 0)))
        await ReverseMapReader(alone, reverse, links, MemoryWriters()).catch_up()
        assert not reverse.meets_unknown


@pytest.mark.parametrize("lack", ["no topic", "an empty topic", "a hidden topic"])
async def test_a_map_that_was_written_and_is_not_there_makes_nobody_a_native(lack: str) -> None:
    """A broker that has just started knows no topics, and a right may have been taken away."""
    async with two_fakes() as (dc1, _, links):
        reverse, writers = ReverseFlow(), MemoryWriters(is_strict=True)
        reader = ReverseMapReader(CONFIG, reverse, links, writers)
        if lack != "no topic":
            dc1.create_topic(MAP, 0)
        if lack == "a hidden topic":
            dc1.hidden.add(MAP)
        else:
            await writers.register(7)
        if lack == "an empty topic":
            await writers.note_end(1)
        assert not reverse.known_part(memoryview(batch_of(7, 0)))
        with pytest.raises(NetworkFault):
            await reader.catch_up()
        assert reverse.unknown_producers == {7}
        dc1.hidden.clear()
        if lack == "no topic":
            dc1.create_topic(MAP, 0)
        announce(dc1, 7, writer=7)
        await writers.register(7)
        await reader.catch_up()
        assert reverse.loop_ids == {7}


async def test_a_map_that_its_mirror_is_about_to_write_is_read_as_the_empty_one_that_it_is() -> (
    None
):
    """Both directions begin at the same moment, or the other one may not write its map."""
    async with two_fakes() as (dc1, _, links):
        reverse, writers = ReverseFlow(), MemoryWriters(is_strict=True)
        dc1.create_topic(MAP, 0)
        await writers.register(7)
        reader = ReverseMapReader(CONFIG, reverse, links, writers)
        await reader.catch_up()
        assert reverse.loop_ids == frozenset()
        announce(dc1, 7, writer=7)
        await reader.catch_up()
        assert reverse.loop_ids == {7}


@pytest.mark.parametrize("later", [(9,), (9, 10, 11)], ids=["shorter", "longer by now"])
async def test_a_map_that_was_made_again_is_read_from_its_beginning(later: tuple[int, ...]) -> None:
    """Else the batches of the new mirror would be sent back, and come again."""
    async with two_fakes() as (dc1, _, links):
        reverse = ReverseFlow()
        reader = ReverseMapReader(CONFIG, reverse, links, MemoryWriters())
        dc1.create_topic(MAP, 0)
        announce(dc1, 7, 8)
        await reader.catch_up()
        assert reverse.loop_ids == {7, 8}
        dc1.create_topic(MAP, 0).topic_id = UUID(int=99)
        announce(dc1, *later)
        await links.source_admin.metadata(refresh=len(later) > 1)
        await reader.catch_up()
        assert reverse.loop_ids == {7, 8, *later}
        assert reverse.arrived.producer is not None
        assert reverse.arrived.producer.producer_id == later[-1]
        announce(dc1, 12)
        await reader.catch_up()
        assert reverse.loop_ids == {7, 8, *later, 12}


async def test_a_map_is_not_read_where_no_flow_goes_the_other_way(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with two_fakes() as (dc1, _, links):
        reverse = ReverseFlow()
        reader = ReverseMapReader(
            replace(CONFIG, has_way_back=False), reverse, links, MemoryWriters()
        )
        dc1.create_topic(MAP, 0)
        announce(dc1, 7)
        await reader.catch_up()
        await reader.catch_up()
        assert (reverse.loop_ids, reverse.arrived.maps) == (frozenset(), {})
    assert caplog.text.count("is not read: no flow dc2->dc1 is configured") == 1


async def test_an_id_that_is_every_plain_producers_is_refused_in_a_map() -> None:
    async with two_fakes() as (dc1, _, links):
        reverse = ReverseFlow()
        reader = ReverseMapReader(CONFIG, reverse, links, MemoryWriters())
        dc1.create_topic(MAP, 0)
        announce(dc1, 7)
        batch = build_batch(
            [Record(0, 0, *mirror_producer(MirrorProducer(producer_id=-1, producer_epoch=0)))]
        )
        log = dc1.topics[MAP].partitions[0]
        moved = bytearray(batch)
        assign_offsets(moved, log.end, 0)
        log.batches.append(bytes(moved))
        log.end += 1
        await reader.catch_up()
        assert reverse.loop_ids == {7}
        assert reverse.arrived.rejected == ["a map record cannot have producer_id -1"]


async def test_a_producer_that_a_client_names_in_the_map_is_no_mirror() -> None:
    """Its records would be left out as if they had come from the target, with a lag of 0."""
    async with two_fakes() as (dc1, _, links):
        reverse = ReverseFlow()
        reader = ReverseMapReader(CONFIG, reverse, links, MemoryWriters(is_strict=True))
        dc1.create_topic(MAP, 0)
        announce(dc1, 7)
        await reader.catch_up()
        assert (reverse.loop_ids, reverse.arrived.maps) == (frozenset(), {})
        assert reader.unbelieved_records.describe() == [
            "2 of producer id -1 (a plain producer), from offset 0 on"
        ]


async def test_nothing_of_a_producer_goes_on_that_records_not_believed_call_a_mirror() -> None:
    """An old copy of the witness does not know who has announced a mirror."""
    async with two_fakes() as (dc1, _, links):
        reverse = ReverseFlow()
        writers = MemoryWriters(is_strict=True)
        reader = ReverseMapReader(CONFIG, reverse, links, writers)
        dc1.create_topic(MAP, 0)
        announce(dc1, 7, writer=1_001)
        await reader.catch_up()
        own, brought = batch_of(5, 0), batch_of(7, 1)
        chunk = memoryview(own + brought + batch_of(5, 2))
        assert reverse.undoubted_part(chunk) == (memoryview(own), 7)
        assert reverse.undoubted_part(memoryview(own)) == (memoryview(own), None)
        assert not reverse.known_part(memoryview(brought))
        await reader.catch_up()
        assert not reverse.known_part(memoryview(brought)), "it is taken for no native"
        await writers.register(1_001)  # the topic is believed again, and read from its beginning
        dc1.topics[MAP].topic_id = UUID(int=99)
        await links.source_admin.metadata(refresh=True)
        await reader.catch_up()
        assert reverse.loop_ids == {7}
        assert reverse.undoubted_part(chunk) == (chunk, None)


async def test_who_writes_without_an_id_of_its_own_casts_no_doubt_on_others() -> None:
    """No mirror writes its map like that."""
    async with two_fakes() as (dc1, _, links):
        reverse = ReverseFlow()
        reader = ReverseMapReader(CONFIG, reverse, links, MemoryWriters(is_strict=True))
        dc1.create_topic(MAP, 0)
        announce(dc1, 7)
        await reader.catch_up()
        chunk = memoryview(batch_of(7, 0))
        assert reverse.undoubted_part(chunk) == (chunk, None)
