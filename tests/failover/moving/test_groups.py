"""What the journal says of groups has an end, however many there are."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import pytest

import failover.moving.groups
from failover.moving.groups import BothMaps, Moved, choose, fitting, move_groups
from failover.sites.site import Site
from offset_translation import OffsetMap
from runtime.configuration.config import PatternSet
from wire.net.operations import GroupOffset
from wire.topic_partition import TopicPartition

COUNT = 20_000
ROOM = 60_000
NOTHING = PatternSet(include=(), exclude=())


class ManyGroups:
    """A site with many groups, each with a member."""

    cluster = None

    async def members(self, _: PatternSet) -> dict[str, int]:
        return {f"group-{number}-of-an-application": 1 for number in range(COUNT)}


SITE = cast("Site", ManyGroups())


def test_as_many_entries_are_kept_as_fit() -> None:
    assert fitting({"a": 1, "b": 2}, 100) == {"a": 1, "b": 2}
    assert fitting({"a": 1, "b": 2}, 10) == {"a": 1}
    assert fitting({"a": 1}, 0) == {}


async def test_of_the_groups_that_were_left_some_are_named_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def describe(*_: object) -> dict[str, object]:
        return {}

    async def settled(_: Site, groups: Sequence[str], *__: object) -> tuple[Any, Sequence[str]]:
        return {group: {} for group in groups}, groups

    async def stored(_: Site, groups: Sequence[str]) -> dict[str, Any]:
        return {group: {} for group in groups}

    async def move(there: Mapping[str, object], *_: object, **__: object) -> dict[str, Moved]:
        return dict.fromkeys(there, Moved(left={TopicPartition("orders", 0): "busy"}))

    monkeypatch.setattr(failover.moving.groups, "describe_groups", describe)
    monkeypatch.setattr(failover.moving.groups, "_settled_positions", settled)
    monkeypatch.setattr(failover.moving.groups, "_positions", stored)
    monkeypatch.setattr(failover.moving.groups, "_move", move)
    facts = await move_groups(SITE, SITE, NOTHING, BothMaps(forward={}), timeout_ms=0, room=ROOM)
    for some, rest in (("left", "more_left"), ("unstable", "more_unstable")):
        named, more = facts[some], facts[rest]
        assert isinstance(named, dict | list)
        assert named
        assert len(named) + cast("int", more) == COUNT
    assert len(json.dumps(facts)) < ROOM


WHERE: Final = TopicPartition("orders", 0)


@pytest.mark.parametrize("starts", [{}, {WHERE: 45}], ids=["inexact", "cut"])
def test_a_group_that_stands_where_it_was_moved_is_still_not_exact(
    starts: Mapping[TopicPartition, int],
) -> None:
    """A successor and the last look find it there, and the report goes by what they say."""
    known = OffsetMap.from_starts([(0, 0), (50, 40)], 90)
    maps = BothMaps(forward={WHERE: known}, target_starts=starts)
    stored = {WHERE: GroupOffset(20 if starts else 500)}
    first = choose(maps, stored, {}, is_idle=True)
    again = choose(maps, stored, {WHERE: GroupOffset(first.positions[WHERE])}, is_idle=True)
    assert (first.cut, first.bounded) != ({}, {})
    assert (again.committed, again.cut, again.bounded) == ({}, first.cut, first.bounded)


@pytest.mark.parametrize(("ends", "reread"), [({WHERE: 120}, 20), ({WHERE: 100}, 0), ({}, 400)])
def test_offsets_behind_the_end_of_the_log_are_not_read_again(
    ends: Mapping[TopicPartition, int], reread: int
) -> None:
    """A position may lie there: of a log that was cut, or reset by hand."""
    known = OffsetMap.from_starts([(0, 0), (50, 40)], 90)
    maps = BothMaps(forward={WHERE: known}, source_ends=ends)
    assert choose(maps, {WHERE: GroupOffset(500)}, {}, is_idle=True).bounded == {WHERE: reread}
