"""The judge of the drill finds what an audit misses or invents, and what it is blind to itself."""

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from tests.drill.audit.judging import (
    PlantedFault,
    Sought,
    Told,
    blind_spots,
    complaints,
    judge,
    table,
    told_by,
)

LOST = Told("dc1->dc2", "plain", 0, "lost", 7, None)
ALTERED = Told("dc1->dc2", "plain", 0, "altered", 9, 8)
PLANTED = (
    PlantedFault(name="lost", ways=((Sought(LOST),),)),
    PlantedFault(name="altered: key", ways=((Sought(ALTERED, "another key"),),)),
)
TOLD = {LOST: "missing", ALTERED: "in its place with another key"}


def test_what_is_told_exactly_is_found() -> None:
    assert judge(PLANTED, TOLD).is_right
    assert blind_spots(PLANTED, TOLD, frozenset(), Random(1)) == []


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({LOST: "missing"}, "told there: nothing"),
        ({LOST: "missing", ALTERED: "with another value"}, "told there: dc1->dc2 plain-0 altered"),
        ({LOST: "missing", ALTERED._replace(target=9): "another key"}, "altered 9 9"),
        ({LOST: "missing", ALTERED._replace(kind="phantom"): "another key"}, "phantom 9 8"),
    ],
)
def test_a_fault_that_is_not_told_or_told_as_something_else_is_missed(
    told: Mapping[Told, str], why: str
) -> None:
    judged = judge(PLANTED, told)
    assert [fault.name for fault, _ in judged.missed] == ["altered: key"]
    assert (judged.found.total(), judged.planted.total()) == (1, 2)
    (first, *_) = complaints(judged)
    assert first.startswith("MISSED altered: key: dc1->dc2 plain-0 altered 9 8; told there: ")
    assert why in first
    assert any("in all" in line and "50.0%" in line for line in table(judged))


def test_a_finding_that_nobody_planted_is_invented() -> None:
    judged = judge(PLANTED, TOLD | {LOST._replace(partition=1): "missing"})
    assert [one.partition for one, _ in judged.invented] == [1]
    assert not judged.is_right
    assert judge(
        PLANTED, TOLD | {LOST._replace(partition=1): ""}, frozenset({LOST._replace(partition=1)})
    ).is_right


def test_all_records_of_a_fault_have_to_be_told() -> None:
    both = PlantedFault(name="two", ways=((Sought(LOST), Sought(ALTERED)),))
    assert [fault.name for fault, _ in judge([both], {LOST: ""}).missed] == ["two"]
    either = PlantedFault(name="either", ways=((Sought(ALTERED),), (Sought(LOST),)))
    assert judge([either], {LOST: ""}).is_right


def test_a_judge_that_finds_everything_has_a_blind_spot() -> None:
    everything = frozenset(TOLD)
    blind = PlantedFault(name="blind", ways=((),))
    assert blind_spots([blind], TOLD, everything, Random(1)) == [
        "blind was made up, and counts as found",
        "blind was withheld, and nothing is invented",
    ]


def row(**values: Any) -> dict[str, Any]:
    return {"flow": "dc1->dc2", "topic": "plain", "partition": 0, "reason": "", **values}


def test_a_row_stands_for_its_records_but_one_of_a_hole_for_itself() -> None:
    told = told_by(
        [
            row(kind="altered", source_offset=5, target_offset=4, records=2),
            row(kind="hole", source_offset=9, target_offset=None, records=30),
        ]
    )
    assert [(one.kind, one.source, one.target) for one in told] == [
        ("altered", 5, 4),
        ("altered", 6, 5),
        ("hole", 9, None),
    ]
