"""Carry a promotion out, step by step, the journal always one write ahead of what happens.

The loop knows nothing of Kafka or ZooKeeper: it asks the journal what comes next
(`failover.journal.steps.next_action`), records that, has it done by `Effects`, and records the
outcome. A controller that is killed anywhere in it leaves a journal from which another one finds
the same next action; every effect may be repeated.
"""

from collections.abc import Awaitable, Callable
from dataclasses import field, replace
from typing import Protocol, TypeAlias, assert_never

from failover.journal.facts import Facts
from failover.journal.journal import (
    Journal,
    PartitionEnds,
    begin_step,
    end_step,
    mark_stale,
    note_facts,
    turn_back,
)
from failover.journal.steps import (
    Direction,
    Finish,
    PromotionState,
    Run,
    StepName,
    StepState,
    Undo,
    is_look_fresh,
    is_switched,
    next_action,
    to_repeat,
)
from wire.values import frozen


class StepFailed(Exception):
    """A step cannot be done; the message is one line that says why and names what is in the way.

    Before the switch this rolls the promotion back.
    """


class RollbackStuck(Exception):
    """Something could not be taken back; the promotion stays unfinished and can be run again."""


@frozen
class StepOutcome:
    """The trace of a finished step in the journal."""

    facts: Facts = field(default_factory=dict)
    partitions: tuple[PartitionEnds, ...] | None = None


Note: TypeAlias = Callable[[Facts], Awaitable[None]]
"""Has the journal hold facts of a step that goes on: what it is about to do hides them."""


def nobody_watches(_: StepName) -> None:
    """Take no notice of a step that begins."""


class Effects(Protocol):
    """The effects of steps. Each may be repeated at any time and ends in the same state."""

    async def run(self, step: StepName, journal: Journal, note: Note, /) -> StepOutcome:
        """Do a step other than `switch`; raises StepFailed, and what `note` raises."""

    async def undo(self, step: StepName, journal: Journal) -> Facts:
        """Take a step back; raises StepFailed."""


class JournalStore(Protocol):
    """Where the journal lives; every write fails for a controller that has been superseded."""

    async def save(self, journal: Journal) -> None:
        """Write the journal."""

    async def save_and_switch(self, journal: Journal) -> None:
        """Write the journal and make its site the active one, both or neither.

        Raises StepFailed when the active site is not the journal's source.
        """


@frozen
class StepReport:
    """One line of the report: a step that ended, and how. Duration in milliseconds."""

    step: StepName
    state: StepState
    duration_ms: int
    facts: Facts
    reason: str | None = None


@frozen
class Executor:
    """The loop and its surroundings: journal, effects, clock, and the listener of its reports."""

    store: JournalStore
    effects: Effects
    clock_ms: Callable[[], int]
    report: Callable[[StepReport], None]
    begun: Callable[[StepName], None] = nobody_watches
    """Told of each step that begins."""

    async def carry_out(self, journal: Journal) -> Journal:
        """Go on with a promotion until it is done or rolled back; return its last journal.

        Raises RollbackStuck when going back is not possible now, and StepFailed when a step behind
        the switch cannot be done now; running it again goes on there.
        """
        while journal.state is PromotionState.RUNNING:
            action = next_action(journal.kind, journal.direction, journal.step_states)
            match action:
                case Run(step=StepName.SWITCH):
                    journal = await self._switch(journal)
                case Run(step=step):
                    journal = await self._run(journal, step)
                case Undo(step=step):
                    journal = await self._undo(journal, step)
                case Finish(state=state):
                    journal = replace(journal, state=state)
                    await self.store.save(journal)
                case _:
                    assert_never(action)
        return journal

    async def look_again(self, journal: Journal) -> Journal:
        """Prepare a promotion that another controller has left: nothing it found is believed.

        Raises RollbackStuck when something cannot be taken back for another look.
        """
        if journal.direction is Direction.BACK:
            return journal
        repeat = to_repeat(journal.kind, journal.step_states)
        for step in repeat.undo:
            journal = await self._undo(journal, step)
        journal = mark_stale(journal, repeat.stale)
        await self.store.save(journal)
        return journal

    async def _run(self, journal: Journal, step: StepName) -> Journal:
        journal, began_ms = await self._begin(journal, step)

        async def note(facts: Facts) -> None:
            nonlocal journal
            journal = note_facts(journal, step, facts)
            await self.store.save(journal)

        try:
            outcome = await self.effects.run(step, journal, note)
        except StepFailed as failure:
            if is_switched(journal.step_states):
                raise
            return await self._fail(journal, step, began_ms, str(failure))
        journal = self._ended(journal, step, outcome.facts)
        if outcome.partitions is not None:
            journal = replace(journal, partitions=outcome.partitions)
        await self.store.save(journal)
        self._report(step, StepState.DONE, began_ms, outcome.facts)
        return journal

    async def _switch(self, journal: Journal) -> Journal:
        """Switch and record it in one transaction, so that no crash can fall between the two.

        If the last look at what the switch rests on has grown old, it is looked again first.
        """
        look = journal.record(StepName.VERIFY_FENCE)
        looked_ms = None if look is None else look.ended_ms
        if not is_look_fresh(journal.kind, looked_ms, self.clock_ms()):
            journal = mark_stale(journal, [StepName.VERIFY_FENCE])
            await self.store.save(journal)
            return journal
        journal, began_ms = await self._begin(journal, StepName.SWITCH)
        switched = replace(self._ended(journal, StepName.SWITCH, {}), switched_ms=self.clock_ms())
        try:
            await self.store.save_and_switch(switched)
        except StepFailed as failure:
            return await self._fail(journal, StepName.SWITCH, began_ms, str(failure))
        self._report(StepName.SWITCH, StepState.DONE, began_ms, {})
        return switched

    async def _undo(self, journal: Journal, step: StepName) -> Journal:
        began_ms = self.clock_ms()
        self.begun(step)
        try:
            facts = await self.effects.undo(step, journal)
        except StepFailed as failure:
            raise RollbackStuck(f"{step} could not be taken back: {failure}") from failure
        journal = end_step(
            journal, step, state=StepState.UNDONE, facts=facts, now_ms=self.clock_ms()
        )
        await self.store.save(journal)
        self._report(step, StepState.UNDONE, began_ms, facts)
        return journal

    async def _begin(self, journal: Journal, step: StepName) -> tuple[Journal, int]:
        began_ms = self.clock_ms()
        self.begun(step)
        journal = begin_step(journal, step, began_ms)
        await self.store.save(journal)
        return journal, began_ms

    async def _fail(self, journal: Journal, step: StepName, began_ms: int, reason: str) -> Journal:
        journal = end_step(journal, step, state=StepState.FAILED, facts={}, now_ms=self.clock_ms())
        journal = turn_back(journal, f"{step}: {reason}")
        await self.store.save(journal)
        self._report(step, StepState.FAILED, began_ms, {}, reason)
        return journal

    def _ended(self, journal: Journal, step: StepName, facts: Facts) -> Journal:
        return end_step(journal, step, state=StepState.DONE, facts=facts, now_ms=self.clock_ms())

    def _report(
        self,
        step: StepName,
        state: StepState,
        began_ms: int,
        facts: Facts,
        reason: str | None = None,
    ) -> None:
        self.report(
            StepReport(
                step=step,
                state=state,
                duration_ms=self.clock_ms() - began_ms,
                facts=facts,
                reason=reason,
            )
        )
