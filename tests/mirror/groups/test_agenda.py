"""When groups are looked at: each reason by name."""

from collections.abc import Iterable, Mapping

from mirror.groups.agenda import LOOKS_A_SECOND, ROUND_MS, Agenda, Due
from wire.topic_partition import TopicPartition

A: TopicPartition = TopicPartition("a", 0)
B: TopicPartition = TopicPartition("b", 1)


def due(
    agenda: Agenda,
    now_ms: int,
    *,
    mirrored: Iterable[TopicPartition] = (),
    ends: Mapping[TopicPartition, int] | None = None,
) -> Due:
    return agenda.due(now_ms, {}, {**dict.fromkeys(mirrored), **(ends or {})})[0]


def test_what_was_put_off_comes_once_and_not_before_its_time() -> None:
    agenda = Agenda(0)
    agenda.later("g", [A], 1_000, 500)
    agenda.later("g", [B], 1_200, 500)
    assert due(agenda, 1_499) == {}
    assert due(agenda, 1_500) == {"g": {A, B}}
    assert due(agenda, 9_999) == {}


def test_a_position_that_waits_for_data_comes_when_the_data_is_there() -> None:
    agenda = Agenda(0)
    agenda.wait_for_data("g", A, 10)
    agenda.wait_for_data("h", A, 20)
    assert due(agenda, 1) == {}
    assert due(agenda, 1, ends={A: 9}) == {}
    assert due(agenda, 1, ends={A: 10}) == {"g": {A}}
    assert due(agenda, 1, ends={A: 25}) == {"g": {A}, "h": {A}}
    agenda.looked_at("g", [A])
    assert due(agenda, 1, ends={A: 25}) == {"h": {A}}


def test_a_partition_that_begins_to_be_mirrored_brings_its_groups() -> None:
    agenda = Agenda(0)
    agenda.wait_for_partition("g", A)
    agenda.wait_for_partition("h", A)
    assert due(agenda, 1, mirrored=[B]) == {}
    assert due(agenda, 1, mirrored=[A, B]) == {"g": {A}, "h": {A}}
    assert due(agenda, 1, mirrored=[A, B]) == {}


def test_a_last_look_is_at_all_that_waits() -> None:
    agenda = Agenda(0)
    agenda.later("late", [A], 0, 500)
    agenda.wait_for_data("ahead", A, 10)
    agenda.wait_for_partition("early", B)
    assert agenda.everything() == {"late": {A}, "ahead": {A}, "early": {B}}


def test_a_position_that_is_gone_waits_for_nothing_any_more() -> None:
    agenda = Agenda(0)
    for group in ("gone", "here"):
        agenda.later(group, [A, B], 0, 500)
        agenda.wait_for_data(group, A, 10)
        agenda.wait_for_partition(group, A)
    agenda.forget("gone", A)
    assert agenda.everything() == {"gone": {B}, "here": {A, B}}
    agenda.forget("here", A)
    assert agenda.everything() == {"gone": {B}, "here": {B}}
    assert not agenda._unmirrored


def test_a_look_makes_the_one_that_was_put_off_needless() -> None:
    agenda = Agenda(0)
    agenda.later("g", [A, B], 0, 500)
    agenda.looked_at("g", [A])
    assert due(agenda, 500) == {"g": {B}}
    agenda.later("g", [A], 500, 500)
    agenda.looked_at("g", [A])
    assert due(agenda, 5_000) == {}


def test_the_last_look_leaves_nothing_out() -> None:
    agenda = Agenda(0)
    agenda.later("g", [A], 0, 5_000)
    agenda.wait_for_data("g", B, 7)
    agenda.wait_for_data("h", B, 8)
    assert agenda.everything() == {"g": {A, B}, "h": {B}}


def test_many_that_wait_do_so_longer() -> None:
    agenda = Agenda(0)
    for number in range(1_000):
        agenda.later(f"g{number}", [A], 0, 500)
    looks = [len(due(agenda, now_ms)) for now_ms in range(0, 10_001, 100)]
    assert sum(looks) == 1_000
    assert max(looks[11:]) <= LOOKS_A_SECOND / 10 + 1


def test_every_group_has_its_turn_in_a_round() -> None:
    agenda = Agenda(0)
    groups = {f"g{number}": None for number in range(250)}
    turns = [
        group
        for now_ms in range(100, ROUND_MS + 101, 100)
        for group in agenda.due(now_ms, groups, {})[1]
    ]
    assert set(turns) == groups.keys()
    assert len(turns) <= 251


def test_a_round_over_very_many_groups_takes_longer() -> None:
    agenda = Agenda(0)
    groups = {f"g{number}": None for number in range(100_000)}
    agenda.due(1_000, groups, {})
    assert len(agenda.due(2_000, groups, {})[1]) == LOOKS_A_SECOND


def test_turns_of_groups_that_are_gone_are_passed_over() -> None:
    agenda = Agenda(0)
    both = {"g": None, "h": None}
    [first] = agenda.due(ROUND_MS // 2, both, {})[1]
    assert agenda.due(ROUND_MS * 3 // 2, {first: None}, {})[1] in ([], [first])
    assert agenda.due(ROUND_MS * 3, {}, {}) == ({}, [])
