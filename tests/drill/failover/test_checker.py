"""Each kind of violation is planted once in a story that is kept, and reported."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.drill.failover.checker import Kind, check
from tests.drill.failover.story import (
    FOLLOWER,
    Acked,
    Forwarded,
    Lag,
    Listing,
    Read,
    Said,
    Story,
    Switch,
    Window,
    advised,
    listed_by,
    sealed_by,
    stated_by,
)
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
    return Read(group="g", at_ms=at_ms, site="dc2", partition=WHERE, offset=offset, value=value)


def said(status: int, text: str, *command: str, ended_ms: int = 220, began: int = 100) -> Said:
    return Said(began_ms=began, ended_ms=ended_ms, command=command, status=status, text=text)


SWITCH = Switch(started_ms=100, switched_ms=200, old="dc1", new="dc2")
LOG: Mapping[int, str] = {0: "a", 1: "b", 2: "c"}
KEPT = Story(
    active="dc2",
    acked=[acked("a", "dc1", 0, 50), acked("b", "dc1", 1, 120), acked("c", "dc2", 2, 300)],
    reads=[read("a", 0, 60), read("b", 1, 250), read("c", 2, 310)],
    said=[said(0, "dc2 is active (epoch 1), RTO 0.10 s", "promote", "dc2")],
    switches=[SWITCH],
    logs={"dc1": {WHERE: LOG}, "dc2": {WHERE: LOG}},
    positions={"g": {WHERE: 3}},
    lags=[Lag(source="dc2", target="dc1", partition=WHERE, records=0)],
    once_from_ms=0,
)
APPENDED = "  warning  dc1 drilled-0 holds records at offsets 3 to 3 that are not on dc2"
ONLY_THERE = "only there  dc1  drilled-0  3  2026-01-01T00:00:00Z  k"
SET_ASIDE = "set aside   dc1  drilled-0  3  2026-01-01T00:00:00Z  k"
LATE = acked("late", "dc1", 3, 210)
SAVED = {("dc1", WHERE, 3): "late"}
OPENED = Window(site="dc1", from_ms=205, until_ms=240, why="opened by hand")
LOOK = said(1, ONLY_THERE, "divergence", ended_ms=400)
STATED = "         drilled-0: at least 2 records, up to 2.0 s (mirrored up to 3, last known end 5)"
LOST_UP_TO = "  drilled-0: mirrored up to dc1 offset 3 (dc2 3)"


ORDER = said(1, "", "promote", "dc2")
"""The promotion that has switched was ordered."""


def kinds(**changes: Any) -> set[Kind]:
    if "said" in changes:
        changes["said"] = [ORDER, *changes["said"]]
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
        (
            Kind.NOT_SAVED,
            {
                "acked": [*KEPT.acked, LATE],
                "said": [said(0, SET_ASIDE, "divergence", ended_ms=400)],
                "saved": {"dc2": SAVED},
            },
        ),
        (
            Kind.NOT_MIRRORED,
            {
                "acked": [*KEPT.acked, acked("gone", "dc1", 2, 60)],
                "said": [said(0, LOST_UP_TO, "promote", "dc2", "--source-lost")],
            },
        ),
        (
            Kind.MISSTATED,
            {
                "acked": [*KEPT.acked, acked("x", "dc1", 3, 10), acked("y", "dc1", 4, 2_900)],
                "said": [
                    said(
                        0, f"{STATED}\n{LOST_UP_TO}", "promote", "dc2", "--source-lost", began=9_000
                    )
                ],
                "logs": {"dc1": {WHERE: {**LOG, 3: "x", 4: "y"}}, "dc2": {WHERE: LOG}},
            },
        ),
        (
            Kind.MISSTATED,
            {"said": [said(0, f"{STATED}\n{LOST_UP_TO}", "promote", "dc2", "--source-lost")]},
        ),
        (Kind.ENDS_DIFFER, {"ends": {"dc1": {(WHERE, "k"): "a"}, "dc2": {(WHERE, "k"): "c"}}}),
        (Kind.ENDS_DIFFER, {"ends": {"dc1": {(WHERE, "k"): "a"}, "dc2": {}}}),
        (Kind.NOT_LISTED, {"acked": [*KEPT.acked, LATE], "windows": [OPENED]}),
        (Kind.NOT_CLEAN, {"said": [said(0, APPENDED, "promote", "dc2")]}),
        (Kind.NOT_CLEAN, {"said": [said(0, ONLY_THERE, "divergence")]}),
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


def test_what_an_open_idle_site_took_is_kept_where_it_is_listed() -> None:
    late = [*KEPT.acked, LATE]
    assert kinds(acked=late, windows=[OPENED], said=[LOOK]) == set()
    assert kinds(acked=late, windows=[OPENED]) == {Kind.LOST, Kind.NOT_LISTED}


def test_what_a_site_took_that_a_promotion_had_opened_in_vain_is_listed() -> None:
    opening = Switch(started_ms=202, switched_ms=230, old="dc2", new="dc1")
    late: dict[str, Any] = {"acked": [*KEPT.acked, LATE], "openings": [opening]}
    assert kinds(**late, said=[LOOK]) == set()
    assert kinds(**late) == {Kind.LOST, Kind.NOT_LISTED}
    beside = acked("beside", "dc2", 4, 220)
    logs = {**KEPT.logs, "dc2": {WHERE: {**LOG, 4: "beside"}}}
    late["acked"] = [*late["acked"], beside]
    assert kinds(**late, said=[LOOK], logs=logs, lags=()) == {Kind.TWO_SITES}


def test_a_listed_write_to_an_idle_site_that_was_to_be_closed_is_a_second_active_site() -> None:
    early = Window(site="dc1", from_ms=150, until_ms=208, why="opened by hand")
    other = Window(site="dc2", from_ms=0, until_ms=900, why="opened by hand")
    for windows in ((), (early,), (other,)):
        assert kinds(acked=[*KEPT.acked, LATE], windows=windows, said=[LOOK]) == {Kind.TWO_SITES}


def test_a_record_that_only_an_earlier_look_has_listed_is_lost() -> None:
    changes: dict[str, Any] = {"acked": [*KEPT.acked, LATE], "windows": [OPENED]}
    later = said(0, "", "divergence", ended_ms=500)
    assert kinds(**changes, said=[LOOK, later]) == {Kind.LOST}
    assert kinds(**changes, said=[LOOK, later], saved={"dc2": SAVED}) == set()


def test_the_end_that_a_promotion_of_a_lost_site_states_gives_no_record_up() -> None:
    lossy = said(0, LOST_UP_TO, "promote", "dc2", "--source-lost")
    beyond = [*KEPT.acked, acked("x", "dc1", 5, 130)]
    assert kinds(acked=beyond, said=[lossy]) == {Kind.LOST}


def test_what_was_listed_before_its_copy_was_deleted_by_order_is_given_up() -> None:
    order = replace(
        said(0, "", "restart", "dc2-dc1", "drilled", "--from-earliest"), began_ms=450, ended_ms=460
    )
    later = said(0, "", "divergence", ended_ms=500)
    changes: dict[str, Any] = {"acked": [*KEPT.acked, LATE], "windows": [OPENED]}
    assert kinds(**changes, said=[LOOK, order, later]) == set()
    early = replace(order, began_ms=300, ended_ms=310)
    assert kinds(**changes, said=[early, LOOK, later]) == {Kind.LOST}


def test_a_record_sent_after_its_offset_was_listed_is_not_given_up() -> None:
    """The offsets of a copy that was deleted come again."""
    again = acked("y", "dc1", 3, 450)
    window = Window(site="dc1", from_ms=205, until_ms=500, why="opened by hand")
    found = kinds(acked=[*KEPT.acked, again], windows=[window], said=[LOOK])
    assert found == {Kind.LOST, Kind.NOT_LISTED}


def test_records_of_a_deleted_topic_are_not_looked_for() -> None:
    gone = replace(acked("x", "dc1", 0, 50), partition=TopicPartition("made", 0))
    assert kinds(acked=[*KEPT.acked, gone]) == {Kind.LOST}
    assert kinds(acked=[*KEPT.acked, gone], deleted=frozenset({"made"})) == set()


def test_a_record_that_one_site_alone_had_may_be_on_both_and_come_back() -> None:
    logs = {"dc1": {WHERE: {**LOG, 3: "a"}}, "dc2": {WHERE: {**LOG, 3: "a"}}}
    aside = said(0, SET_ASIDE, "divergence")
    assert Kind.DOUBLED in kinds(logs=logs)
    assert Kind.DOUBLED not in kinds(logs=logs, said=[*KEPT.said, aside])


def forwarded(value: str, offset: int, sent_ms: int) -> Forwarded:
    return Forwarded(sent_ms=sent_ms, partition=WHERE, offset=offset, value=value)


def test_what_was_written_behind_an_endpoint_is_kept_on_the_active_site_or_given_up() -> None:
    changes: dict[str, Any] = {"forwarded": [forwarded("c", 2, 10), forwarded("gone", 3, 130)]}
    assert kinds(**changes) == {Kind.LOST}
    assert kinds(**changes, said=[LOOK]) == set(), "it is listed, at whichever site it was taken"
    assert kinds(**changes, saved={"dc2": {("dc1", WHERE, 3): "gone"}}) == set()


def test_a_forwarded_producer_writes_twice_only_where_something_has_happened() -> None:
    logs = {"dc1": {WHERE: {**LOG, 3: "a"}}, "dc2": {WHERE: {**LOG, 3: "a"}}}
    changes: dict[str, Any] = {"logs": logs, "forwarded": [forwarded("a", 0, 40)], "lags": ()}
    changes["reads"] = [*KEPT.reads]
    assert Kind.DOUBLED in kinds(**changes, once_from_ms=40)
    assert kinds(**changes, once_from_ms=41) == set()
    assert kinds(**changes, once_from_ms=None) == set()


def test_a_key_may_end_differently_where_its_record_was_merged() -> None:
    logs = {"dc1": {WHERE: {**LOG, 3: "late"}}, "dc2": {WHERE: LOG}}
    ends = {"dc1": {(WHERE, "k"): "late"}, "dc2": {(WHERE, "k"): "c"}}
    changes: dict[str, Any] = {"logs": logs, "ends": ends}
    order = said(0, "", "restart", "dc2-dc1", "drilled:0", "--merge")
    later = replace(order, began_ms=450, ended_ms=460)
    assert Kind.ENDS_DIFFER in kinds(**changes, said=[LOOK])
    assert Kind.ENDS_DIFFER in kinds(**changes, said=[order, LOOK])
    assert Kind.ENDS_DIFFER not in kinds(**changes, said=[LOOK, later])


def test_a_group_passes_over_what_was_set_aside_on_the_active_site() -> None:
    reads = [read("a", 0, 60), read("c", 2, 310)]
    assert Kind.SKIPPED in kinds(reads=reads)
    assert kinds(reads=reads, saved={"dc2": {("dc2", WHERE, 1): "b"}}) == set()


def test_reading_again_is_excused_before_the_given_time_only() -> None:
    again = [*KEPT.reads, read("a", 0, 320)]
    assert kinds(reads=again, once_from_ms=321) == set()
    assert kinds(reads=again, once_from_ms=None) == set()


def test_the_places_that_commands_list_are_understood_as_they_are_printed() -> None:
    text = f"{APPENDED}\n{ONLY_THERE}\n{SET_ASIDE}\n"
    assert {(part.what, part.site, part.start, part.stop) for part in listed_by(said(1, text))} == {
        (Listing.APPENDED, "dc1", 3, 4),
        (Listing.ONLY_THERE, "dc1", 3, 4),
        (Listing.SET_ASIDE, "dc1", 3, 4),
    }
    [sealed] = sealed_by(said(0, LOST_UP_TO, "promote", "dc2", "--source-lost"))
    assert (sealed.source, sealed.site, sealed.partition, sealed.end) == ("dc1", "dc2", WHERE, 3)


def test_a_stated_loss_is_understood_as_it_is_printed() -> None:
    unknown = STATED.replace(", up to 2.0 s", "") + "; the mirror's news end 9.0 s ago"
    text = f"{STATED}\n{unknown}"
    found = [(one.seconds, one.known_end) for one in stated_by(said(0, text, "promote", "dc2"))]
    assert found == [(2.0, 5), (None, 5)]


def test_a_switch_that_nobody_has_ordered_for_these_topics_is_named() -> None:
    assert {one.kind for one in check(replace(KEPT, said=[]))} == {Kind.NOT_ORDERED}
    to_other_site = said(0, "", "promote", "dc1", "--set", "second")
    assert Kind.NOT_ORDERED in {one.kind for one in check(replace(KEPT, said=[to_other_site]))}
    too_late = replace(ORDER, began_ms=201, ended_ms=210)
    assert {one.kind for one in check(replace(KEPT, said=[too_late]))} == {Kind.NOT_ORDERED}
    by_hand = said(0, "", "recover", "--active", "dc2", "--write")
    assert check(replace(KEPT, said=[by_hand])) == []


def test_each_switch_needs_an_order_of_its_own() -> None:
    back = Switch(started_ms=300, switched_ms=400, old="dc2", new="dc1")
    again = Switch(started_ms=500, switched_ms=600, old="dc1", new="dc2")
    ordered = said(1, "", "promote", "dc1", began=300, ended_ms=410)
    found = check(replace(KEPT, switches=[SWITCH, back, again], said=[ORDER, ordered], acked=[]))
    assert [one.of for one in found if one.kind is Kind.NOT_ORDERED] == ["dc2"]


def test_a_record_that_waits_while_other_topics_are_moved_is_named() -> None:
    slow = replace(acked("c", "dc2", 2, 20_000), sent_ms=300, who=FOLLOWER)
    changes: dict[str, Any] = {"acked": [*KEPT.acked[:2], slow]}
    assert kinds(**changes, left_alone=(250, 20_000)) == {Kind.HELD_UP}
    assert kinds(**changes, left_alone=(301, 20_000)) == set()
    assert kinds(**changes) == set()
    by_others = {"acked": [*KEPT.acked[:2], replace(slow, who="pinned to dc2")]}
    assert kinds(**by_others, left_alone=(250, 20_000)) == set()


def test_advice_is_understood_with_its_set() -> None:
    text = "`mirror restart dc1-dc2 drilled-second:0 --quarantine --set second` sets them aside"
    assert advised(said(1, text, "divergence")) == [("dc1-dc2", "drilled-second:0")]


def test_the_restarts_that_a_text_advises_are_found_once() -> None:
    text = "`mirror restart dc1-dc2 drilled:0 --quarantine` sets them aside"
    assert advised(said(1, f"{text}\n{text}", "divergence")) == [("dc1-dc2", "drilled:0")]
