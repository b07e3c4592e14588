"""Plans of faults: repeatable, over in time, and never two on the same process at once."""

from hypothesis import given
from hypothesis import strategies as st

from tests.drill.faults import Kind, Planned, Targets, plan, plan_absences

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
    assert {fault.kind for fault in planned} == set(Kind)
    cut = {frozenset(fault.targets) for fault in planned if fault.kind is Kind.CUT}
    assert len(cut) == 10


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
