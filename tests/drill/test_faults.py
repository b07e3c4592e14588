"""Plans of faults: repeatable, over in time, and never two on the same process at once."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.drill.faults import UNCLEAN_S, Kind, Planned, Targets, plan, plan_absences

TARGETS = Targets(processes=("b0", "b1", "b2", "zk"), bystanders=("clients",))


def overlap(one: Planned, other: Planned) -> bool:
    return one.at_s < other.ends_s and other.at_s < one.ends_s


@given(st.integers(0, 10_000), st.floats(5, 40))
def test_plans_are_over_in_time_and_hit_no_process_twice_at_once(seed: int, seconds: float) -> None:
    planned = plan(seed, seconds, TARGETS)
    assert planned == plan(seed, seconds, TARGETS)
    for fault in planned:
        assert 1 <= fault.at_s < fault.ends_s <= seconds + 1e-9
        assert set(fault.targets) & set(TARGETS.processes)
        if fault.kind in {Kind.KILL, Kind.TERMINATE, Kind.PAUSE, Kind.ISOLATE}:
            assert "clients" not in fault.targets
        together = [other for other in planned if other != fault and overlap(fault, other)]
        assert not any(set(other.targets) & set(fault.targets) for other in together)
    for fault in planned:
        beginning = [other for other in planned if other.at_s <= fault.at_s < other.ends_s]
        assert len(beginning) <= TARGETS.together


def test_every_kind_of_fault_comes_and_every_pair_is_cut() -> None:
    planned = [fault for seed in range(50) for fault in plan(seed, 100, TARGETS)]
    assert {fault.kind for fault in planned} == set(Kind) - {Kind.UNCLEAN}
    cut = {frozenset(fault.targets) for fault in planned if fault.kind is Kind.CUT}
    assert len(cut) == 10


def test_where_there_are_replicas_each_of_them_leads_uncleanly_for_long_enough() -> None:
    targets = replace(TARGETS, replicas=("b1", "b2"))
    planned = [fault for seed in range(20) for fault in plan(seed, 60, targets)]
    unclean = [fault for fault in planned if fault.kind is Kind.UNCLEAN]
    assert {fault.kind for fault in planned} == set(Kind)
    assert {fault.targets for fault in unclean} == {("b1", "b2"), ("b2", "b1")}
    assert all(fault.lasts_s == UNCLEAN_S and fault.ends_s <= 60 for fault in unclean)


def test_only_pairs_that_talk_are_cut_where_they_are_named() -> None:
    targets = replace(TARGETS, pairs=(("b0", "b1"), ("b0", "zk")))
    planned = [fault for seed in range(20) for fault in plan(seed, 60, targets)]
    cut = {frozenset(fault.targets) for fault in planned if len(fault.targets) == 2}
    assert cut == {frozenset(pair) for pair in targets.pairs}


def test_without_a_network_only_processes_are_hit() -> None:
    targets = Targets(processes=("mirror",), has_network=False)
    kinds = {fault.kind for seed in range(20) for fault in plan(seed, 60, targets)}
    assert kinds == {Kind.KILL, Kind.TERMINATE, Kind.PAUSE}


@given(st.integers(0, 10_000))
def test_members_die_one_at_a_time_and_are_all_back_in_the_end(seed: int) -> None:
    absences = plan_absences(seed, 30.0, 2)
    assert absences == plan_absences(seed, 30.0, 2)
    assert absences
    ends = [0.0, *(one.at_s + one.lasts_s for one in absences)]
    assert all(before < one.at_s for before, one in zip(ends, absences, strict=False))
    assert ends[-1] < 30.0
    assert {one.member for one in absences} <= {0, 1}
