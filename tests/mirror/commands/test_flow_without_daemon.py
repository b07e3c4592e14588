"""A flow without a daemon, as it is seen from outside."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from mirror.commands.flow_without_daemon import observe, read_map
from offset_translation.map_records import map_topic_name, piece_start
from offset_translation.runs import Place
from runtime.configuration.config import PatternSet
from tests.doubles.fake_cluster import FakeCluster
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from tests.mirror.two_fakes import two_fakes
from wire.messages.offset_fetch import OffsetFetchRequest
from wire.record_batch import Record, build_batch

GROUPS = 250
EVERYTHING = PatternSet(include=(re.compile(".*"),), exclude=())
FLOW = replace(CONFIG, topics=EVERYTHING, groups=EVERYTHING)


def questions(fake: FakeCluster) -> int:
    """How often a cluster was asked for positions."""
    keys = Counter(header.api_key for broker in fake.brokers.values() for header, _ in broker.asked)
    return keys[OffsetFetchRequest.API_KEY]


async def test_groups_are_asked_for_many_at_a_time() -> None:
    async with two_fakes() as (dc1, dc2, links):
        dc1.create_topic("t", 0)
        for number in range(GROUPS):
            dc1.offsets[f"g{number:03}"]["t", 0] = number
            dc2.offsets[f"g{number:03}"]["t", 0] = number + 1
        report = await observe(FLOW, links, MemoryWriters(), reason="", now_ms=0)
        assert report["faults"] == []
        assert [(one["source_offset"], one["target_offset"]) for one in report["groups"]] == [
            (number, number + 1) for number in range(GROUPS)
        ]
        assert (questions(dc1), questions(dc2)) == (3, 3)


@pytest.mark.parametrize(("topic", "is_told"), [("t", True), ("__of-another-pair", False)])
async def test_what_of_a_map_is_not_believed_is_complained_about_if_the_flow_has_the_topic(
    capsys: pytest.CaptureFixture[str], topic: str, *, is_told: bool
) -> None:
    async with two_fakes() as (_, dc2, links):
        log = dc2.create_topic(map_topic_name(FLOW.source), 0).partitions[0]
        key, value = piece_start(topic, 0, source_start=0, place=Place(0))
        log.batches.append(build_batch([Record(0, 0, key, value)], producer_id=9))
        log.end = 1
        assert (await read_map(FLOW, links, MemoryWriters(is_strict=True))).maps == {}
    said = capsys.readouterr().err
    assert ("(1 records): 1 of producer id 9, from offset 0 on" in said) is is_told
    assert ("`failover recover --believe-maps" in said) is is_told


async def test_a_group_that_is_not_told_of_hides_no_other() -> None:
    async with two_fakes(2) as (dc1, dc2, links):
        dc1.create_topic("t", 0)
        for group in ("a", "b", "c"):
            dc1.offsets[group]["t", 0] = 5
            dc2.coordinators[group] = 0
        dc2.coordinators["b"] = -1
        report = await observe(FLOW, links, MemoryWriters(), reason="", now_ms=0)
    assert [one["group"] for one in report["groups"]] == ["a", "c"]
    [fault] = report["faults"]
    assert fault.startswith("groups: dc2: coordinator of group b: COORDINATOR_NOT_AVAILABLE")
