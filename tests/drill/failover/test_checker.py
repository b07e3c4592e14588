"""Each kind of violation is planted once in a story that is kept, and reported."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.drill.failover.checker import Kind, check
from tests.drill.failover.story import Acked, Lag, Read, Said, Story, Switch, parts_given_up
from wire.topic_partition import TopicPartition

WHERE = TopicPartition("drilled", 0)


def acked(value: str, site: str, offset: int, at_ms: int) -> Acked:
    return Acked(
        sent_ms=at_ms - 1,
        at_ms=at_ms,
        who="p",
        site=site,
        partition=WHERE,
        offset=offset,
        value=value,
    )


def read(value: str, offset: int, at_ms: int) -> Read:
    return Read(at_ms=at_ms, site="dc2", partition=WHERE, offset=offset, value=value)


def said(status: int, text: str, *command: str, ended_ms: int = 220) -> Said:
    return Said(began_ms=100, ended_ms=ended_ms, command=command, status=status, text=text)


SWITCH = Switch(started_ms=100, switched_ms=200, old="dc1", new="dc2")
LOG: Mapping[int, str] = {0: "a", 1: "b", 2: "c"}
KEPT = Story(
    active="dc2",
    acked=[acked("a", "dc1", 0, 50), acked("b", "dc1", 1, 120), acked("c", "dc2", 2, 300)],
    reads=[read("a", 0, 60), read("b", 1, 250), read("c", 2, 310)],
    said=[said(0, "dc2 is active (epoch 1), RTO 0.10 s", "promote", "dc2")],
    switches=[SWITCH],
    logs={"dc1": {WHERE: LOG}, "dc2": {WHERE: LOG}},
    positions={WHERE: 3},
    lags=[Lag(source="dc2", target="dc1", partition=WHERE, records=0)],
    once_from_ms=0,
)
LISTED = "  warning  dc1 drilled-0 holds records at offsets 3 to 3 that are not on dc2"
LATE = acked("late", "dc1", 3, 210)
LOST_UP_TO = "  drilled-0: mirrored up to dc1 offset 3 (dc2 3)"


def kinds(**changes: Any) -> set[Kind]:
    return {finding.kind for finding in check(replace(KEPT, **changes))}


def test_a_story_that_keeps_everything_has_no_findings() -> None:
    assert check(KEPT) == []


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (Kind.LOST, {"acked": [*KEPT.acked, acked("gone", "dc1", 3, 130)]}),
        (Kind.TWO_SITES, {"acked": [*KEPT.acked, LATE]}),
        (
            Kind.TWO_SITES,
            {"acked": [*KEPT.acked, acked("early", "dc2", 3, 150), acked("beside", "dc1", 4, 160)]},
        ),
        (Kind.TWO_SITES, {"acked": [*KEPT.acked, acked("b", "dc2", 1, 90)]}),
        (Kind.DOUBLED, {"logs": {"dc1": {WHERE: LOG}, "dc2": {WHERE: {**LOG, 3: "a"}}}}),
        (Kind.NOT_CLEAN, {"said": [said(0, LISTED, "promote", "dc2")]}),
        (
            Kind.NOT_CLEAN,
            {"said": [said(0, "only there  dc1  drilled-0  3  2026-01-01  k", "divergence")]},
        ),
        (Kind.NOT_LEVEL, {"logs": {"dc1": {WHERE: {0: "a", 1: "b"}}, "dc2": {WHERE: LOG}}}),
        (Kind.NOT_LEVEL, {"logs": {"dc1": {}, "dc2": {WHERE: LOG}}}),
        (Kind.NOT_ACTIVE, {"said": [said(0, "", "promote", "dc1")]}),
        (Kind.NOT_ACTIVE, {"said": [said(0, "", "promote", "dc2", ended_ms=150)]}),
        (Kind.SKIPPED, {"reads": [read("a", 0, 60), read("c", 2, 310)]}),
        (Kind.READ_AGAIN, {"reads": [*KEPT.reads, read("a", 0, 320)]}),
    ],
    ids=lambda given: given.name if isinstance(given, Kind) else "",
)
def test_each_kind_of_violation_is_reported(kind: Kind, changes: dict[str, Any]) -> None:
    assert kind in kinds(**changes)


def test_what_a_command_has_listed_by_offset_is_given_up_and_nothing_else() -> None:
    late = [*KEPT.acked, LATE]
    assert kinds(acked=late, said=[said(1, LISTED, "promote", "dc2")]) == set()
    other = LISTED.replace("3 to 3", "4 to 9")
    assert kinds(acked=late, said=[said(1, other, "promote", "dc2")]) == {Kind.LOST, Kind.TWO_SITES}


def test_a_record_sent_after_its_offset_was_listed_is_not_given_up() -> None:
    """The offsets of a lost site come again after a failback."""
    lossy = said(0, LOST_UP_TO, "promote", "dc2", "--source-lost")
    before, after = acked("x", "dc1", 5, 130), acked("y", "dc1", 5, 400)
    assert kinds(acked=[*KEPT.acked, before], said=[lossy]) == set()
    assert Kind.LOST in kinds(acked=[*KEPT.acked, after], said=[lossy])


def test_records_of_a_deleted_topic_are_not_looked_for() -> None:
    gone = replace(acked("x", "dc1", 0, 50), partition=TopicPartition("made", 0))
    assert kinds(acked=[*KEPT.acked, gone]) == {Kind.LOST}
    assert kinds(acked=[*KEPT.acked, gone], deleted=frozenset({"made"})) == set()


def test_a_record_set_aside_on_one_site_may_have_come_back_to_it() -> None:
    logs = {"dc1": {WHERE: {**LOG, 3: "a"}}, "dc2": {WHERE: {**LOG, 3: "a"}}}
    aside = said(0, "set aside   dc2  drilled-0  3  2026-01-01T00:00:00Z  k", "divergence")
    assert Kind.DOUBLED in kinds(logs=logs)
    assert Kind.DOUBLED not in kinds(logs=logs, said=[*KEPT.said, aside])


def test_reading_again_is_excused_before_the_given_time_only() -> None:
    again = [*KEPT.reads, read("a", 0, 320)]
    assert kinds(reads=again, once_from_ms=321) == set()
    assert kinds(reads=again, once_from_ms=None) == set()


def test_the_places_that_commands_list_are_understood_as_they_are_printed() -> None:
    parts = [*parts_given_up(said(1, f"{LISTED}\n{LOST_UP_TO}\n", "promote"))]
    assert [(part.site, part.start, part.stop) for part in parts] == [
        ("dc1", 3, 4),
        ("dc1", 3, None),
    ]
