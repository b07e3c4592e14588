"""A small part of `make drill AUDIT=1`, over logs in memory."""

from random import Random

import pytest

from spark_audit.compare import settling
from tests.drill.audit.judging import blind_spots, complaints, judge
from tests.drill.audit.memory import allowed_of, expected_of, told_in_memory
from tests.drill.audit.partitions import KINDS
from tests.drill.audit.planning import FAULTS_A_PARTITION, plan, plan_large

NOW_MS = 1_800_000_000_000
SEED = 36


def test_each_planted_fault_is_found_at_its_place_by_its_name_and_nothing_else() -> None:
    faults = FAULTS_A_PARTITION * len(KINDS)
    planted = plan(SEED, faults=faults, now_ms=NOW_MS, between=(4, 25, 100))
    expected, allowed = expected_of(planted), allowed_of(planted)
    told = told_in_memory(planted, NOW_MS)
    judged = judge(expected, told, allowed)
    assert list(complaints(judged)) == []
    assert len(expected) >= faults
    assert blind_spots(expected, told, allowed, Random(SEED)) == []


def test_faults_among_more_than_a_worker_holds_of_what_a_cleaner_took_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settling, "MOST_UNMATCHED", 100)
    planted = plan_large(SEED, now_ms=NOW_MS, records=800)
    told = told_in_memory(planted, NOW_MS)
    assert list(complaints(judge(expected_of(planted), told))) == []
