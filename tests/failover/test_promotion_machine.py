"""Controllers killed at any instant: a promotion still ends, and no record can be written twice.

The world below is as small as it can be: two sites with a fence each, the witness with its active
site and one journal, a flow. Every effect and every write to the witness may be the last thing its
controller does (the thing itself done or not done), and a zombie may go on after a successor has
begun.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest
import trio
from hypothesis import assume, given
from hypothesis import strategies as st

from failover.journal.execute import (
    Executor,
    Note,
    RollbackStuck,
    StepFailed,
    StepOutcome,
    StepReport,
)
from failover.journal.facts import Facts
from failover.journal.journal import Journal, decode_journal, encode_journal, taken_on
from failover.journal.steps import ORDER, PromotionKind, PromotionState, StepName, is_switched


class Killed(BaseException):
    """The controller's process is no more."""


class Superseded(Exception):
    """Another controller wrote the journal since."""


@dataclass(slots=True, kw_only=True)
class World:
    """Two sites and a witness."""

    active: str = "dc1"
    moving_to: str | None = None
    fenced: set[str] = field(default_factory=set)
    flow_runs: bool = True
    sealed: bool = False
    journal: bytes = b""
    version: int = 0
    source_answers: bool = True

    def check(self) -> None:
        """No instant may allow writes at both sites, or an unsealed map behind the switch."""
        if self.active == "dc2":
            assert self.sealed
            assert not self.flow_runs
            assert "dc2" not in self.fenced
            if self.source_answers:
                assert "dc1" in self.fenced


@dataclass(slots=True, kw_only=True)
class Fate:
    """What goes wrong: a countdown to the kill, and the steps that fail."""

    kill_in: int
    failing: frozenset[StepName]

    def strike(self) -> None:
        """Pass one instant at which the controller may die."""
        self.kill_in -= 1
        if self.kill_in == 0:
            raise Killed


@dataclass(slots=True, kw_only=True)
class FakeStore:
    """The journal's node with its version, as one controller holds it."""

    world: World
    fate: Fate
    version: int

    async def save(self, journal: Journal) -> None:
        await self._write(journal, lambda: None)

    async def save_and_switch(self, journal: Journal) -> None:
        if self.world.active != journal.source:
            raise StepFailed(f"the active site is {self.world.active}")

        def switch() -> None:
            self.world.active = journal.site
            self.world.moving_to = None

        await self._write(journal, switch)

    async def _write(self, journal: Journal, together_with: Callable[[], None]) -> None:
        await trio.lowlevel.checkpoint()
        self.fate.strike()
        if self.version != self.world.version:
            raise Superseded
        self.world.journal = encode_journal(journal)
        self.world.version = self.version = self.version + 1
        together_with()
        self.world.check()
        self.fate.strike()


@dataclass(slots=True, kw_only=True)
class FakeEffects:
    """Steps as they change the world; what only looks or waits changes nothing."""

    world: World
    fate: Fate

    async def run(self, step: StepName, journal: Journal, _: Note) -> StepOutcome:
        await trio.lowlevel.checkpoint()
        self.fate.strike()
        if step in self.fate.failing:
            raise StepFailed(f"{step} was bound to fail")
        self._act(step, journal)
        self.fate.strike()
        return StepOutcome(facts={"done": step.value})

    def _act(self, step: StepName, journal: Journal) -> None:
        world = self.world
        match step:
            case StepName.ANNOUNCE:
                world.moving_to = journal.site
            case StepName.FENCE if world.source_answers:
                world.fenced.add("dc1")
            case StepName.STOP_FLOW:
                world.flow_runs = False
            case StepName.SEAL:
                world.sealed = True
            case StepName.OPEN_TARGET:
                world.fenced.discard("dc2")
            case _:
                return

    async def undo(self, step: StepName, journal: Journal) -> Facts:
        await trio.lowlevel.checkpoint()
        assert not is_switched(journal.step_states)
        self.fate.strike()
        match step:
            case StepName.ANNOUNCE:
                self.world.moving_to = None
            case StepName.FENCE if not self.world.source_answers:
                raise StepFailed("dc1 does not answer")
            case StepName.FENCE:
                self.world.fenced.discard("dc1")
            case StepName.STOP_FLOW:
                self.world.flow_runs = True
            case StepName.SEAL:
                self.world.sealed = False
            case _:
                pass
        self.fate.strike()
        return {}


def controller(world: World, fate: Fate, reports: list[StepReport]) -> Executor:
    """Return a controller that has just read the journal."""
    return Executor(
        store=FakeStore(world=world, fate=fate, version=world.version),
        effects=FakeEffects(world=world, fate=fate),
        clock_ms=lambda: 0,
        report=reports.append,
    )


def begin(world: World, kind: PromotionKind) -> None:
    """Write the journal of a promotion that is about to start."""
    journal = Journal(epoch=1, site="dc2", source="dc1", kind=kind, started_ms=0)
    world.journal = encode_journal(journal)


async def take_over(executor: Executor, journal: Journal) -> Journal:
    """Go on as any controller does that finds the promotion unfinished."""
    return await executor.carry_out(await executor.look_again(journal))


def run_to_the_end(world: World, kills: list[int], failing: frozenset[StepName]) -> Journal:
    """Start one controller after the other until one of them survives."""
    for kill_in in [*kills, 0]:
        fate = Fate(kill_in=kill_in, failing=failing)
        executor = controller(world, fate, [])
        try:
            return trio.run(take_over, executor, decode_journal(world.journal))
        except Killed:
            world.check()
    raise AssertionError("the last controller is never killed")


def before_switch(kind: PromotionKind) -> Sequence[StepName]:
    order = ORDER[kind]
    return order[: order.index(StepName.SWITCH)]


kill_times = st.lists(st.integers(1, 60), max_size=6)
kinds = st.sampled_from(PromotionKind)
failing_steps = st.frozensets(st.sampled_from(before_switch(PromotionKind.PLANNED)), max_size=2)


@given(kinds, kill_times)
def test_whenever_controllers_are_killed_the_promotion_is_done(
    kind: PromotionKind, kills: list[int]
) -> None:
    world = World()
    begin(world, kind)
    journal = run_to_the_end(world, kills, frozenset())
    assert journal.state is PromotionState.DONE
    assert (world.active, world.moving_to) == ("dc2", None)
    world.check()


@given(kill_times)
def test_a_fence_that_is_lifted_while_no_controller_lives_is_set_again(kills: list[int]) -> None:
    world = World()
    begin(world, PromotionKind.PLANNED)
    for kill_in in [*kills, 0]:
        executor = controller(world, Fate(kill_in=kill_in, failing=frozenset()), [])
        try:
            trio.run(take_over, executor, decode_journal(world.journal))
        except Killed:
            if world.active == "dc1":
                world.fenced.discard("dc1")
                world.flow_runs = True
    assert world.active == "dc2"
    world.check()


@given(kinds, kill_times, failing_steps)
def test_a_failing_step_ends_in_a_complete_rollback_or_does_not_matter(
    kind: PromotionKind, kills: list[int], failing: frozenset[StepName]
) -> None:
    world = World()
    begin(world, kind)
    journal = run_to_the_end(world, kills, failing)
    if failing & set(ORDER[kind]):
        assert journal.state is PromotionState.ROLLED_BACK
        assert journal.reason is not None
        assert world == World(journal=world.journal, version=world.version)
    else:
        assert journal.state is PromotionState.DONE


@given(
    st.integers(1, 60),
    kill_times,
    st.sampled_from(before_switch(PromotionKind.SOURCE_LOST)),
)
def test_what_a_replaced_promotion_did_is_taken_back_by_the_one_in_its_stead(
    kill_in: int, kills: list[int], failing: StepName
) -> None:
    world = World()
    begin(world, PromotionKind.PLANNED)
    first = controller(world, Fate(kill_in=kill_in, failing=frozenset()), [])
    trio.run(survive, first, decode_journal(world.journal))
    replaced = decode_journal(world.journal)
    assume(not is_switched(replaced.step_states))
    world.moving_to = None
    steps = taken_on(replaced, PromotionKind.SOURCE_LOST)
    begin(world, PromotionKind.SOURCE_LOST)
    world.journal = encode_journal(replace(decode_journal(world.journal), epoch=2, steps=steps))
    journal = run_to_the_end(world, kills, frozenset({failing}))
    assert journal.state is PromotionState.ROLLED_BACK
    assert world == World(journal=world.journal, version=world.version)


@given(kinds, st.integers(1, 60), st.integers(1, 60))
def test_a_controller_that_wakes_up_late_changes_nothing_any_more(
    kind: PromotionKind, zombie_stops_at: int, successor_dies_at: int
) -> None:
    world = World()
    begin(world, kind)
    zombie = controller(world, Fate(kill_in=zombie_stops_at, failing=frozenset()), [])
    zombie_journal = decode_journal(world.journal)

    async def race() -> None:
        """The zombie pauses at every checkpoint while its successor goes on."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(survive, zombie, zombie_journal)
            successor = controller(world, Fate(kill_in=successor_dies_at, failing=frozenset()), [])
            nursery.start_soon(survive, successor, decode_journal(world.journal))

    trio.run(race)
    world.check()
    journal = run_to_the_end(world, [], frozenset())
    assert journal.state is PromotionState.DONE
    assert world.active == "dc2"


async def survive(executor: Executor, journal: Journal) -> None:
    """Run a controller until it ends, is killed, or finds itself superseded."""
    try:
        await executor.carry_out(journal)
    except (Killed, Superseded):
        return


def test_a_lost_source_that_cannot_be_unfenced_leaves_the_promotion_unfinished() -> None:
    world = World(source_answers=False)
    begin(world, PromotionKind.SOURCE_LOST)
    fate = Fate(kill_in=0, failing=frozenset({StepName.SEAL}))
    executor = controller(world, fate, [])
    with pytest.raises(RollbackStuck, match="fence could not be taken back"):
        trio.run(executor.carry_out, decode_journal(world.journal))
    assert decode_journal(world.journal).state is PromotionState.RUNNING


def test_a_step_that_fails_behind_the_switch_is_left_to_the_next_run() -> None:
    world = World()
    begin(world, PromotionKind.PLANNED)
    fate = Fate(kill_in=0, failing=frozenset({StepName.START_REVERSE}))
    with pytest.raises(StepFailed):
        trio.run(controller(world, fate, []).carry_out, decode_journal(world.journal))
    assert (world.active, decode_journal(world.journal).state) == ("dc2", PromotionState.RUNNING)
    assert run_to_the_end(world, [], frozenset()).state is PromotionState.DONE


def test_every_step_is_reported_once_with_its_facts() -> None:
    world = World()
    begin(world, PromotionKind.PLANNED)
    reports: list[StepReport] = []
    executor = controller(world, Fate(kill_in=0, failing=frozenset()), reports)
    trio.run(executor.carry_out, decode_journal(world.journal))
    assert [report.step for report in reports] == [*ORDER[PromotionKind.PLANNED]]
    assert reports[2].facts == {"done": "fence"}
