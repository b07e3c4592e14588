"""How hooks ended, as the journal has it and as reports say it. Pure."""

from typing import Any, Final

from failover.journal.journal import Journal
from failover.journal.steps import StepName
from wire.values import frozen

CALLED: Final = "hooks"
"""The fact of a step that says how its hooks ended."""
TAKEN_BACK: Final = "hooks_taken_back"
"""The fact of the step that is taken back last."""


@frozen
class Called:
    """How the calls of one hook ended."""

    hook: str
    point: str
    attempts: int
    duration_ms: int
    said: str = ""
    failure: str | None
    """None for success, which has to be said."""

    def __str__(self) -> str:
        tried = "" if self.attempts == 1 else f", {self.attempts} attempts"
        took = f"{self.duration_ms / 1000:.2f} s{tried}"
        if self.failure is not None:
            return f"{self.hook} ({self.point}) failed ({took}): {self.failure}"
        return f"{self.hook} ({self.point}) done ({took}){f': {self.said}' if self.said else ''}"


def called_in(journal: Journal, step: StepName, key: str = CALLED) -> tuple[Called, ...]:
    """Return what a step's facts say of its hooks.

    What cannot be understood stands for a hook that failed: nobody knows how it ended.
    """
    found: Any = journal.facts(step).get(key, ())
    try:
        return tuple(Called(**one) for one in found)
    except TypeError as fault:
        return (
            Called(
                hook="unknown",
                point=step.value,
                attempts=0,
                duration_ms=0,
                failure=f"the journal's account of the hooks cannot be understood: {fault}",
            ),
        )
