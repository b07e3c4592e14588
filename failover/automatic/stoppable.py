"""Steps of a promotion that nobody has commanded: each asks first whether it may still go on."""

from collections.abc import Awaitable, Callable

from failover.journal.execute import Effects, Note, StepFailed, StepOutcome
from failover.journal.facts import Facts
from failover.journal.journal import Journal
from failover.journal.lease import Lease
from failover.journal.steps import StepName, is_switched
from wire.values import frozen


@frozen
class StoppableEffects:
    """Does steps as `Effects` does; before and behind each, up to the switch, it asks."""

    effects: Effects
    lease: Lease
    why_stop: Callable[[], Awaitable[str | None]]
    """Returns what is in the way now, None where nothing is."""

    async def run(self, step: StepName, journal: Journal, note: Note) -> StepOutcome:
        """Do a step; raises what the step raises, and StepFailed for what is in the way."""
        if is_switched(journal.step_states):
            return await self.effects.run(step, journal, note)
        await self._require()
        outcome = await self.effects.run(step, journal, note)
        await self._require()
        return outcome

    async def undo(self, step: StepName, journal: Journal) -> Facts:
        """Take a step back; raises what that raises."""
        return await self.effects.undo(step, journal)

    async def _require(self) -> None:
        why = await self.lease.act(self.why_stop)
        if why is not None:
            raise StepFailed(f"nobody has commanded this promotion, and {why}")
