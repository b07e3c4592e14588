"""The first look of a flow: what is there begins by `start`, what comes later with its first."""

from dataclasses import replace
from uuid import UUID

from mirror.map.map_log import MapLog
from mirror.start.begins import has_begun
from mirror.topics.first_look import first_due, follows
from offset_translation.map_records import (
    BegunKey,
    FlowBegunKey,
    MirrorProducer,
    StartDueKey,
    decode_key,
    flow_begun,
    map_topic_name,
    mirror_producer,
)
from offset_translation.map_state import MapState
from runtime.configuration.flow_start import parse_start
from tests.doubles.fake_cluster import FakeCluster
from tests.mirror.building import CONFIG
from tests.mirror.topics.discovering import (
    EVERYTHING,
    discovery,
    note_changes,
    tell_settings,
)
from tests.mirror.two_fakes import let_create
from wire.record_batch import iterate_records
from wire.topic_partition import TopicPartition

LATEST = replace(CONFIG, topics=EVERYTHING, start=parse_start("latest"))


async def ready(dc1: FakeCluster, dc2: FakeCluster, map_log: MapLog) -> None:
    """Have both clusters answer discovery, and the map be written."""
    for fake in (dc1, dc2):
        tell_settings(fake, {})
    note_changes(dc2)
    let_create(dc2)
    dc2.create_topic(map_topic_name("dc1"), 0)
    map_log._writer = MirrorProducer(producer_id=9, producer_epoch=0)
    ours = MirrorProducer(producer_id=7, producer_epoch=0)
    await map_log.write(lambda: [mirror_producer(ours)])


def written(dc2: FakeCluster) -> list[object]:
    """Return the keys of begins in the map topic, in their order."""
    log = dc2.topics[map_topic_name("dc1")].partitions[0]
    keys = (decode_key(one.key or b"") for batch in log.batches for one in iterate_records(batch))
    return [key for key in keys if isinstance(key, FlowBegunKey | StartDueKey | BegunKey)]


async def test_only_what_is_there_when_the_flow_first_looks_begins_by_its_start() -> None:
    async with discovery(LATEST) as (looking, dc1, dc2, map_log):
        await ready(dc1, dc2, map_log)
        dc1.create_topic("old", 0)
        await looking.discover()
        dc1.create_topic("new", 0)
        dc1.create_topic("old", 0, 0).topic_id = UUID(int=1)
        await looking.discover()
        first, due = written(dc2), map_log.state.begins.due
    assert first == [StartDueKey(topic="old", partition=0), FlowBegunKey(registry="", topic_set="")]
    assert due.keys() == {TopicPartition("old", 0)}, "neither the new topic nor the new partition"


async def test_a_flow_that_begins_at_the_earliest_stays_so_whatever_its_file_says_later() -> None:
    async with discovery(replace(LATEST, start=parse_start("earliest"))) as parts:
        looking, dc1, dc2, map_log = parts
        await ready(dc1, dc2, map_log)
        await looking.discover()
        looking._config.replace(replace(LATEST, start=parse_start("latest")))
        dc1.create_topic("new", 0)
        await looking.discover()
        assert written(dc2) == [FlowBegunKey(registry="", topic_set="")]
        assert has_begun(map_log.state, LATEST)


async def test_what_was_due_before_a_crash_is_looked_at_anew_until_the_flow_has_begun() -> None:
    async with discovery(LATEST) as (looking, dc1, dc2, map_log):
        await ready(dc1, dc2, map_log)
        orders = dc1.create_topic("old", 0)
        view = await looking._links.source_admin.metadata(refresh=True)
        await map_log.write_many(first_due(LATEST, view.topics.values(), follows=False))
        assert not has_begun(map_log.state, LATEST)
        await looking.discover()
        assert has_begun(map_log.state, LATEST)
        assert map_log.state.begins.due == {TopicPartition("old", 0): orders.topic_id}


def test_a_flow_back_carries_all_once_the_other_direction_has_begun() -> None:
    arrived = MapState()
    assert not follows(LATEST, arrived, is_all=True)
    arrived.replay(*flow_begun("ab", None, 5))
    assert follows(LATEST, arrived, is_all=True)
    both = replace(LATEST, is_active_active=True)
    assert not follows(both, arrived, is_all=True), "both begin by themselves"


async def test_another_mirror_that_nobody_believes_may_have_begun_the_other_direction() -> None:
    async with discovery(LATEST) as (looking, dc1, dc2, map_log):
        await ready(dc1, dc2, map_log)
        dc1.create_topic("old", 0)
        unbelieved = looking._parts.reverse.unbelieved
        unbelieved.note(mirror_producer(MirrorProducer(producer_id=9, producer_epoch=0))[0])
        await looking.discover()
        assert has_begun(map_log.state, LATEST)
        assert not map_log.state.begins.due, "all of it is carried"
