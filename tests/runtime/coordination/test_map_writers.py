"""Who may write a map: registered in the witness, believed by everybody who reads it."""

from typing import cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.workers.handover import Assignment
from offset_translation.map_records import (
    MirrorProducer,
    decode_key,
    decode_value,
    mirror_producer,
)
from offset_translation.map_state import MapState
from runtime.coordination.map_registry import MOST_UNKNOWN, Anybody, WitnessWriters
from runtime.coordination.map_writers import (
    CONFIRM_AGAIN_MS,
    MOST_NAMED,
    MOST_UNSEEN,
    TO_ADOPT,
    UNSEEN_KEPT_MS,
    MapCut,
    MapGone,
    MapMadeAgain,
    MapReading,
    MapWriters,
    Registration,
    UnbelievedRecords,
    WitnessOutdated,
    WritersUnknown,
    begun_writers,
    note_unbelieved,
    number_in,
    number_record,
)
from runtime.coordination.witness import WitnessGarbled, WitnessPaths
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperUnreachable
from tests.doubles.memory_nodes import MemoryNodes
from wire.record_batch import Record
from wire.topic_partition import TopicPartition

PATHS = WitnessPaths(root="/dr")
NODE = PATHS.map_writers("dc1", "dc2")
MAP_ID, ANOTHER_ID = UUID(int=1), UUID(int=2)


def registry(nodes: MemoryNodes) -> WitnessWriters:
    return WitnessWriters(cast("ZooKeeper", nodes), PATHS, "dc1", "dc2")


async def test_only_who_has_registered_is_believed() -> None:
    nodes = MemoryNodes()
    writer, reader = registry(nodes), registry(nodes)
    assert await writer.begin(end=0, topic_id=MAP_ID) == 0
    await writer.register(1_001)
    assert await reader.believes(1_001, 0, MapReading())
    assert not await reader.believes(-1, 0, MapReading())
    assert not await reader.believes(1_002, 0, MapReading())


async def test_a_producer_that_registers_later_is_believed_without_a_new_start() -> None:
    nodes = MemoryNodes()
    writer, reader = registry(nodes), registry(nodes)
    await writer.begin(end=0, topic_id=MAP_ID)
    await writer.register(1_001)
    assert await reader.believes(1_001, 0, MapReading())
    await writer.register(1_002)
    assert await reader.believes(1_002, 7, MapReading())


async def test_a_witness_that_lags_is_in_step_before_anybody_is_called_foreign() -> None:
    nodes = MemoryNodes()
    writer, reader = registry(nodes), registry(nodes)
    await writer.begin(end=0, topic_id=MAP_ID)
    before = nodes.syncs
    assert not await reader.believes(1_001, 0, MapReading())
    assert nodes.syncs == before + 1
    for _ in range(5):  # many batches of one stranger cost the witness nothing
        assert not await reader.believes(1_001, 3, MapReading())
    assert nodes.syncs == before + 1


async def test_any_number_of_strangers_cost_the_witness_one_look_a_reading() -> None:
    nodes = MemoryNodes()
    reader = registry(nodes)
    await registry(nodes).begin(end=0, topic_id=MAP_ID)
    looks = []
    for first in (0, 3 * MOST_UNKNOWN):
        before, reading = nodes.syncs, MapReading()
        for producer_id in range(first, first + 3 * MOST_UNKNOWN):
            assert not await reader.believes(producer_id, producer_id, reading)
        looks.append(nodes.syncs - before)
    assert looks == [1, 1]
    await registry(nodes).register(9 * MOST_UNKNOWN)
    assert await reader.believes(9 * MOST_UNKNOWN, 0, MapReading())


async def test_what_a_client_put_into_a_map_before_the_first_start_is_not_believed() -> None:
    nodes = MemoryNodes()
    assert not await registry(nodes).believes(-1, 0, MapReading()), "no mirror has ever run"
    writer = registry(nodes)
    assert await writer.begin(end=9, topic_id=MAP_ID) == 0
    assert not await writer.believes(-1, 8, MapReading())


async def test_the_map_of_an_earlier_version_is_adopted_once_as_it_is() -> None:
    nodes = MemoryNodes()
    old = MirrorProducer(producer_id=1_007, producer_epoch=0)
    worker = Assignment(version=1, owners={TopicPartition("t", 0): "w"}, writers={"w": old})
    nodes.nodes[PATHS.assignment("dc1", "dc2")] = (worker.encode(), 0)
    assert await registry(nodes).believes(-1, 8, MapReading())
    writer = registry(nodes)
    assert await writer.begin(end=9, topic_id=MAP_ID) == 9
    assert await writer.begin(end=12, topic_id=MAP_ID) == 0
    reader = registry(nodes)
    assert await reader.believes(-1, 8, MapReading())
    assert not await reader.believes(-1, 9, MapReading())
    at_work = await reader.believes(1_007, 9, MapReading())
    assert at_work, "a worker of that version that is still at work"


async def test_a_map_that_was_made_again_holds_nothing_that_was_adopted() -> None:
    nodes = MemoryNodes()
    nodes.nodes[NODE] = (TO_ADOPT.encode(), 0)
    writer = registry(nodes)
    assert await writer.begin(end=9, topic_id=MAP_ID) == 9
    assert await writer.begin(end=0, topic_id=ANOTHER_ID) == 0
    assert not await registry(nodes).believes(-1, 8, MapReading())


async def written_by(producer_id: int) -> MemoryNodes:
    """Return a witness that knows a map with this id, and who writes it."""
    nodes = MemoryNodes()
    writer = registry(nodes)
    await writer.begin(end=0, topic_id=MAP_ID)
    await writer.register(producer_id)
    return nodes


async def test_nothing_is_believed_of_a_map_that_was_made_again_and_partly_put_back() -> None:
    """While nothing ran somebody deleted it, and has copied some of its batches as bytes."""
    nodes = await written_by(1_001)
    with pytest.raises(MapMadeAgain, match=r"is another topic .* `mirror rebuild-map --write`"):
        await registry(nodes).believes(1_001, 0, MapReading(topic_id=ANOTHER_ID))
    with pytest.raises(MapMadeAgain, match="is another topic"):
        await registry(nodes).begin(end=3, topic_id=ANOTHER_ID)
    assert await registry(nodes).believes(1_001, 0, MapReading(topic_id=MAP_ID))
    assert await registry(nodes).believes(1_001, 0, MapReading(topic_id=UUID(int=0)))


async def test_who_reads_a_map_hears_that_a_mirror_has_begun_it_anew() -> None:
    nodes = await written_by(1_001)
    reader = registry(nodes)
    assert await reader.believes(1_001, 0, MapReading(topic_id=MAP_ID))
    await registry(nodes).begin(end=0, topic_id=ANOTHER_ID)
    assert await reader.believes(1_001, 0, MapReading(topic_id=ANOTHER_ID))
    with pytest.raises(MapMadeAgain):
        await reader.believes(1_001, 0, MapReading(topic_id=MAP_ID))


async def test_a_map_that_ends_before_what_was_written_is_believed_in_nothing() -> None:
    """Its disk was restored from an older copy: the newest pieces are missing, and nothing else."""
    nodes = await written_by(1_001)
    await registry(nodes).note_end(9)
    await registry(nodes).note_end(7)
    for end in (9, 12, None):
        assert await registry(nodes).believes(1_001, 0, MapReading(topic_id=MAP_ID, end=end))
    with pytest.raises(MapCut, match=r"ends at 8, and our programs have written it up to 9"):
        await registry(nodes).believes(1_001, 0, MapReading(topic_id=MAP_ID, end=8))
    with pytest.raises(MapCut, match="lacks the newest pieces"):
        await registry(nodes).begin(end=8, topic_id=MAP_ID)
    adopted = MapWriters.decode(nodes.nodes[NODE][0]).adopting()
    nodes.nodes[NODE] = (adopted.encode(), 5)
    assert await registry(nodes).begin(end=8, topic_id=MAP_ID) == 8


async def test_a_map_of_which_nothing_is_there_is_no_map_that_never_was() -> None:
    """Else what a mirror has brought would be taken for the site's own, and sent back."""
    await registry(MemoryNodes()).require_unwritten(is_there=False)
    nodes = await written_by(1_001)
    with pytest.raises(MapGone, match=r"dc2 of what comes from dc1 is not there, or holds nothing"):
        await registry(nodes).require_unwritten(is_there=False)
    await registry(nodes).note_end(9)
    for is_there in (False, True):
        with pytest.raises(MapGone, match=r"written it up to 9: .* `mirror rebuild-map --write`"):
            await registry(nodes).require_unwritten(is_there=is_there)
    await registry(nodes).forget_log()
    await registry(nodes).require_unwritten(is_there=False)
    known = MapWriters.decode(nodes.nodes[NODE][0])
    assert known.newest.number == 1, "numbers go on, so an old copy of the witness is told"


async def test_a_map_that_was_begun_and_not_written_yet_is_not_gone() -> None:
    """Its mirror begins at the same moment, or may not write: the other direction works on."""
    nodes = await written_by(1_001)
    await registry(nodes).require_unwritten(is_there=True)


async def test_a_map_that_is_to_be_adopted_may_be_gone() -> None:
    nodes = await written_by(1_001)
    adopted = MapWriters.decode(nodes.nodes[NODE][0]).adopting()
    nodes.nodes[NODE] = (adopted.encode(), 5)
    await registry(nodes).require_unwritten(is_there=False)
    await registry(nodes).forget_log()
    assert MapWriters.decode(nodes.nodes[NODE][0]).adopts


@pytest.mark.parametrize("topic_id", [ANOTHER_ID, UUID(int=0)], ids=["ids", "no ids"])
async def test_a_map_that_is_begun_anew_may_be_shorter(topic_id: UUID) -> None:
    nodes = MemoryNodes()
    await registry(nodes).begin(end=0, topic_id=MAP_ID if topic_id.int else topic_id)
    await registry(nodes).note_end(9)
    await registry(nodes).begin(end=0, topic_id=topic_id)
    assert await registry(nodes).begin(end=3, topic_id=topic_id) == 0


async def test_a_map_that_a_person_has_adopted_may_be_another_topic() -> None:
    nodes = await written_by(1_001)
    known = MapWriters.decode(nodes.nodes[NODE][0]).adopting()
    nodes.nodes[NODE] = (known.encode(), 1)
    assert await registry(nodes).believes(7, 0, MapReading(topic_id=ANOTHER_ID))
    assert await registry(nodes).begin(end=3, topic_id=ANOTHER_ID) == 3


async def test_two_who_begin_at_once_lose_nobodys_registration() -> None:
    class Crossing(MemoryNodes):
        has_crossed = False

        async def set(self, path: str, data: bytes, *, version: int = -1) -> int:
            if not self.has_crossed:
                self.has_crossed = True
                await registry(self).register(1_002)
            return await super().set(path, data, version=version)

    nodes = Crossing()
    writer = registry(nodes)
    await writer.begin(end=0, topic_id=MAP_ID)
    await writer.register(1_001)
    assert set(MapWriters.decode(nodes.nodes[NODE][0]).registered) == {1_001, 1_002}


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"[]", b"{}", b'{"registered": {"x": 1}}', b"\xff"),
        MapWriters(number=2**63 - 1).encode(),
    ],
)
async def test_a_garbled_node_is_named_and_nothing_is_believed_meanwhile(data: bytes) -> None:
    nodes = MemoryNodes()
    nodes.nodes[NODE] = (data, 0)
    with pytest.raises(WritersUnknown, match="/dr/mirror/dc1-dc2/map-writers"):
        await registry(nodes).believes(1_001, 0, MapReading())


async def test_without_a_witness_nobody_knows() -> None:
    class Gone(MemoryNodes):
        async def sync(self) -> None:
            raise ZooKeeperUnreachable("w:1")

    with pytest.raises(WritersUnknown, match="map-writers: who writes the topic is not known: w:1"):
        await registry(Gone()).believes(1_001, 0, MapReading())
    with pytest.raises(WritersUnknown, match="w:1"):
        await Anybody("w:1").register(5)


@given(
    st.dictionaries(st.integers(0, 2**63 - 1), st.integers(0, 2**62)),
    st.integers(0, 2**62),
    st.sampled_from(["", MAP_ID.hex]),
    st.booleans(),
)
def test_a_registry_comes_back_from_its_node(
    registered: dict[int, int], before: int, topic_id: str, adopts: bool
) -> None:
    wanted = MapWriters(
        registered=registered, adopted_before=before, topic_id=topic_id, adopts=adopts
    )
    assert MapWriters.decode(wanted.encode()) == wanted


def test_a_registry_stays_small_and_forgets_nobody_whose_records_are_there() -> None:
    known = MapWriters(registered={1: 0, 2: 0})
    for producer_id in range(10, 10 + 2 * MOST_UNSEEN):
        known = MapWriters(registered={**known.registered, producer_id: UNSEEN_KEPT_MS})
    after = known.with_producer(3, UNSEEN_KEPT_MS + 1, in_log={1})
    assert {1, 3} <= after.registered.keys()
    assert 2 not in after.registered, "without a record, and old"
    assert len(after.registered) == MOST_UNSEEN + 2
    assert len(after.encode()) < 500_000, "a node takes a mebibyte"


def test_a_registry_that_is_too_long_is_garbled_and_not_believed() -> None:
    with pytest.raises(WitnessGarbled, match="no valid map writers"):
        MapWriters.decode(b'{"registered": {"-1": 1}, "adopted_before": 0, "topic_id": ""}')


def test_a_map_is_adopted_up_to_its_end_of_that_time() -> None:
    begun = begun_writers(TO_ADOPT, 9, MAP_ID.hex, 0)
    assert (begun.adopted_before, begun.adopts) == (9, False)
    assert begun_writers(begun, 20, MAP_ID.hex, 0) == begun


def test_a_topic_that_was_made_again_keeps_only_writers_that_may_be_at_work() -> None:
    """A cluster that was set up anew gives the ids of before to other clients."""
    now_ms = 10 * CONFIRM_AGAIN_MS
    known = MapWriters(
        registered={1: now_ms - CONFIRM_AGAIN_MS, 2: now_ms - 2 * CONFIRM_AGAIN_MS},
        adopted_before=9,
        topic_id=MAP_ID.hex,
    )
    assert begun_writers(known, 9, MAP_ID.hex, now_ms) == known
    begun = begun_writers(known, 0, ANOTHER_ID.hex, now_ms)
    assert begun.registered.keys() == {1}
    assert not begun.believes(2, 3)


def test_unbelieved_records_are_all_counted_and_the_first_producers_named() -> None:
    foreign = UnbelievedRecords()
    for offset in range(3):
        foreign.note(-1, offset)
    for producer_id in range(2 * MOST_NAMED):
        foreign.note(producer_id, 50)
    assert foreign.count == 3 + 2 * MOST_NAMED
    assert foreign.describe()[0] == ("3 of producer id -1 (a plain producer), from offset 0 on")
    assert len(foreign.describe()) == MOST_NAMED


def test_what_another_pair_says_of_its_topics_in_the_same_map_is_not_counted() -> None:
    """Its operator would be told to have it believed."""
    ours, theirs = TopicPartition("orders", 0), TopicPartition("stock", 0)
    foreign = UnbelievedRecords("orders".__eq__)
    foreign.note(8, 0)
    foreign.note(8, 1, {theirs})
    foreign.note(8, 2)
    assert (foreign.count, foreign.describe(), list(foreign.producers)) == (0, [], [])
    foreign.note(9, 3)
    assert foreign.describe() == ["1 of producer id 9, from offset 3 on"], "it may be anybody's"
    foreign.note(8, 4, {ours})
    assert foreign.describe()[0] == "4 of producer id 8, from offset 0 on"
    assert (foreign.count, sorted(foreign.producers)) == (5, [8, 9])


def test_producers_beyond_those_that_are_told_apart_are_counted_whatever_they_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runtime.coordination.map_writers.MOST_TOLD_APART", 2)
    foreign = UnbelievedRecords("orders".__eq__)
    for producer_id in range(5):
        foreign.note(producer_id, producer_id, {TopicPartition("stock", 0)})
    assert foreign.count == 3


def test_a_number_is_read_as_it_was_written_and_a_map_knows_its_key() -> None:
    registration = Registration("ab" * 16, 12)
    key, value = number_record(registration)
    assert number_in(key, value) == registration
    assert decode_value(decode_key(key), value) == 12
    state = MapState()
    state.replay(key, value)
    state.replay(key, None)
    assert state.rejected == []
    assert state.records_of(key) == []
    for other in (
        (key, None),
        (None, value),
        (b"\x00\x00" + key[2:], value),
        (key[:-1], value),
        (key, value + b"x"),
    ):
        assert number_in(*other) is None
    assert number_in(key, b"\x00\x01" + value[2:]) is None, "of a version to come"


async def test_each_new_writer_has_a_higher_number_and_the_same_one_has_none() -> None:
    nodes = MemoryNodes()
    first, second = registry(nodes), registry(nodes)
    registrations = [await first.register(1_001), await second.register(1_002)]
    assert [one.number for one in registrations] == [1, 2]
    assert len({one.registry for one in registrations}) == 1
    assert (await first.register(1_001)).number == 1, "it is not asked again within the hour"
    assert (await registry(nodes).register(1_001)).number == 2


async def test_a_witness_that_was_set_back_is_known_by_the_numbers_of_later_writers() -> None:
    nodes = MemoryNodes()
    writer = registry(nodes)
    await writer.begin(end=0, topic_id=MAP_ID)
    await writer.register(1_001)
    old_copy = nodes.nodes[NODE]
    newest = await writer.register(1_002)
    assert not await registry(nodes).is_elsewhere(newest)
    nodes.nodes[NODE] = old_copy
    reader = registry(nodes)
    assert not await reader.believes(1_002, 5, MapReading())
    for one in (reader, registry(nodes)):
        with pytest.raises(WitnessOutdated, match=r"writer 2 .* it knows of 1, .*failover recover"):
            await one.is_elsewhere(newest)
    nodes.nodes[NODE] = (TO_ADOPT.encode(), 5)
    assert not await reader.is_elsewhere(newest)


async def test_who_has_seen_more_than_the_witness_writes_nothing_to_it() -> None:
    nodes = MemoryNodes()
    writer = registry(nodes)
    await writer.begin(end=0, topic_id=MAP_ID)
    await writer.register(1_001)
    old_copy = nodes.nodes[NODE]
    await writer.register(1_002)
    nodes.nodes[NODE] = old_copy
    with pytest.raises(WitnessOutdated, match="knows of 1"):
        await writer.register(1_003)
    with pytest.raises(WitnessOutdated, match="knows of 1"):
        await writer.begin(end=0, topic_id=MAP_ID)
    with pytest.raises(WitnessOutdated, match="knows of 1"):
        await writer.believes(1_004, 0, MapReading())
    assert nodes.nodes[NODE] == old_copy


async def test_a_topic_that_was_adopted_since_is_counted_anew() -> None:
    nodes = MemoryNodes()
    at_work, adopting = registry(nodes), registry(nodes)
    for producer_id in (1_001, 1_002):
        await at_work.register(producer_id)
    nodes.nodes[NODE] = (TO_ADOPT.encode(), 5)
    assert await adopting.begin(end=9, topic_id=MAP_ID) == 9
    assert (await adopting.register(1_003)).number == 1
    assert await at_work.believes(1_003, 9, MapReading())


async def test_writers_of_another_pair_on_the_same_cluster_say_nothing_of_this_witness() -> None:
    ours, theirs = MemoryNodes(), MemoryNodes()
    for producer_id in (1_001, 1_002):
        newest = await registry(theirs).register(producer_id)
    await registry(ours).begin(end=0, topic_id=MAP_ID)
    assert await registry(ours).is_elsewhere(newest)


async def test_a_mirror_of_another_pair_that_has_just_begun_is_not_counted() -> None:
    ours, theirs, foreign = MemoryNodes(), MemoryNodes(), UnbelievedRecords("orders".__eq__)
    await registry(ours).begin(end=0, topic_id=MAP_ID)
    key, value = number_record(await registry(theirs).register(1_001))
    for offset, record in enumerate(
        [(key, value), mirror_producer(MirrorProducer(producer_id=1_002, producer_epoch=0))]
    ):
        await note_unbelieved(registry(ours), foreign, 1_001, Record(offset, 0, *record))
    assert foreign.count == 0
    await note_unbelieved(
        registry(ours), foreign, 1_001, Record(2, 0, b"", b""), {TopicPartition("orders", 0)}
    )
    assert foreign.count == 3, "whoever speaks of our topics is counted, wherever it is registered"


def test_partitions_that_strangers_name_are_remembered_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runtime.coordination.map_writers.MOST_ABOUT", 3)
    foreign = UnbelievedRecords()
    for number in range(9):
        assert foreign.speaks_of(TopicPartition("x", 0)) is (number >= 3)
        assert foreign.speaks_of_topics("x".__eq__) is (number >= 3)
        foreign.note(7, number, {TopicPartition("t", number)})
    assert (foreign.count, len(foreign.about)) == (9, 3)
    assert UnbelievedRecords().speaks_of_topics("x".__eq__) is False
