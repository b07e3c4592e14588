"""Hooks around the steps of a promotion: when each is called, and what follows when one fails.

Before the switch a hook that fails fails its step, and the promotion is taken back. Behind it
nothing is held up: the hooks behind `switch` are called beside `confirm`, and those that failed are
called again once the flow back runs. What fails then too leaves the promotion unfinished, to be
run again; `failover serve` does it by itself.

When a promotion is taken back, its hooks are called to take back what they did, the last one first,
and only when the source takes writes again. One that fails then is told of, and holds up nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial

import trio

from failover.hooks.call import Call, HookFailed
from failover.hooks.called import CALLED, TAKEN_BACK, Called, called_in
from failover.hooks.occasion import occasion_of
from failover.journal.execute import Effects, Note, StepFailed, StepOutcome
from failover.journal.facts import Facts
from failover.journal.journal import Journal
from failover.journal.lease import Lease
from failover.journal.steps import ORDER, UNDOABLE, Direction, PromotionKind, StepName, is_switched
from runtime.configuration.hooks_section import HookConfig
from runtime.configuration.topic_sets import DEFAULT_SET
from runtime.process.clock import uptime_ms
from runtime.process.tasks import background_tasks
from runtime.set_option import set_option
from wire.values import frozen


@frozen
class HookedEffects:
    """Does the steps of a promotion, and calls the hooks around them, as `Effects` does."""

    effects: Effects
    lease: Lease
    hooks: tuple[HookConfig, ...]
    bootstraps: Mapping[str, str]
    """The addresses of each site's brokers."""
    call: Call
    topic_set: str | None = None
    """None where the file has no sets."""
    """What moves."""

    async def run(self, step: StepName, journal: Journal, note: Note) -> StepOutcome:
        """Do a step with its hooks; raises what the step raises, and StepFailed for a hook."""
        if step is StepName.CONFIRM:
            return await self._confirm(journal, note)
        before = await self._require(journal, self._at(step, is_before=True))
        outcome = await self.effects.run(step, journal, note)
        due = self._at(step, is_before=False)
        if step is StepName.START_REVERSE:
            done = {one.hook for one in called_in(journal, StepName.CONFIRM) if not one.failure}
            switched = self._at(StepName.SWITCH, is_before=False)
            due = [hook for hook in switched if hook.name not in done] + due
        after = await self._require(journal, due)
        return _with_hooks(outcome, [*before, *after])

    async def undo(self, step: StepName, journal: Journal) -> Facts:
        """Take a step back; raises what that raises."""
        facts = await self.effects.undo(step, journal)
        if journal.direction is Direction.BACK and step is undone_last(journal.kind):
            reached = {record.name.value for record in journal.steps}
            due = [hook for hook in reversed(self._in_order(journal.kind)) if hook.step in reached]
            called = await self._call_all(journal, due, is_undone=True)
            called += self._not_in_file(journal)
            if called:
                return {**facts, TAKEN_BACK: [asdict(one) for one in called]}
        return facts

    def _not_in_file(self, journal: Journal) -> list[Called]:
        """Return the hooks that were called and that nobody can call to take back what they did."""
        known = {hook.name for hook in self.hooks}
        return [
            Called(
                hook=one.hook,
                point=f"{one.point}, taken back",
                attempts=0,
                duration_ms=0,
                failure="failover.hooks has it no more: what it did stays as it is",
            )
            for record in journal.steps
            for one in called_in(journal, record.name)
            if one.hook not in known
        ]

    async def _confirm(self, journal: Journal, note: Note) -> StepOutcome:
        """Look behind the switch, and have the hooks called meanwhile, once each."""
        once = [replace(hook, attempts=1) for hook in self._at(StepName.SWITCH, is_before=False)]
        called: list[Called] = []
        faults: list[Exception] = []
        ended = trio.Event()

        async def tell() -> None:
            try:
                called.extend(await self._call_all(journal, once))
            except Exception as fault:  # noqa: BLE001 - raised again below, as it was
                faults.append(fault)
            ended.set()

        async with background_tasks() as tasks:
            tasks.start_soon(tell)
            outcome = await self.effects.run(StepName.CONFIRM, journal, note)
            await ended.wait()
        if faults:
            raise faults[0]
        return _with_hooks(outcome, called)

    async def _require(self, journal: Journal, hooks: Collection[HookConfig]) -> list[Called]:
        """Call hooks; raises StepFailed at the first that fails."""
        called: list[Called] = []
        for hook in hooks:
            [one] = await self._call_all(journal, [hook])
            if one.failure is not None:
                raise StepFailed(f"hook {one}{_how_to_end(journal, self.topic_set)}")
            called.append(one)
        return called

    async def _call_all(
        self, journal: Journal, hooks: Collection[HookConfig], *, is_undone: bool = False
    ) -> list[Called]:
        return [
            await self.lease.act(partial(self._call, hook, journal, is_undone=is_undone))
            for hook in hooks
        ]

    async def _call(self, hook: HookConfig, journal: Journal, *, is_undone: bool) -> Called:
        """Call one hook until it does what it should, or its attempts are used up."""
        occasion = occasion_of(
            hook,
            journal,
            self.bootstraps,
            is_undone=is_undone,
            topic_set=self.topic_set or DEFAULT_SET,
        )
        began_ms, failure, said = uptime_ms(), None, ""
        for attempt in range(1, hook.attempts + 1):
            try:
                said, failure = await self.call(hook, occasion), None
                break
            except HookFailed as problem:
                failure = str(problem)
                if attempt < hook.attempts:
                    await trio.sleep(hook.backoff_ms * 2 ** min(attempt - 1, 10) / 1_000)
        return Called(
            hook=hook.name,
            point=f"{hook.point}, taken back" if is_undone else hook.point,
            attempts=attempt,
            duration_ms=uptime_ms() - began_ms,
            said=said,
            failure=failure,
        )

    def _at(self, step: StepName, *, is_before: bool) -> list[HookConfig]:
        return [
            hook for hook in self.hooks if hook.step == step.value and hook.is_before is is_before
        ]

    def _in_order(self, kind: PromotionKind) -> list[HookConfig]:
        """Return the hooks before the switch as a promotion of this kind comes to them."""
        return [
            hook
            for step in ORDER[kind]
            if step in UNDOABLE
            for is_before in (True, False)
            for hook in self._at(step, is_before=is_before)
        ]


def undone_last(kind: PromotionKind) -> StepName:
    """Return the step that is taken back last: the first of those that leave something behind."""
    return next(step for step in ORDER[kind] if step in UNDOABLE)


def _with_hooks(outcome: StepOutcome, called: Sequence[Called]) -> StepOutcome:
    if not called:
        return outcome
    return replace(outcome, facts={**outcome.facts, CALLED: [asdict(one) for one in called]})


def _how_to_end(journal: Journal, topic_set: str | None) -> str:
    """Return what to do about a hook that fails where nothing else is left to do."""
    if not is_switched(journal.step_states):
        return ""
    return (
        f"; all else is done: `failover promote {journal.site}{set_option(topic_set)}` calls it"
        " again, and with --without-hooks ends without it"
    )
