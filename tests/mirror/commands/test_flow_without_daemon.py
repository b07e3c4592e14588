"""A flow without a daemon, as it is seen from outside."""

import re
from collections import Counter
from dataclasses import replace

from mirror.commands.flow_without_daemon import observe
from runtime.configuration.config import PatternSet
from tests.doubles.fake_cluster import FakeCluster
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from tests.mirror.two_fakes import two_fakes
from wire.messages.offset_fetch import OffsetFetchRequest

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
