"""The steps of a promotion, the order they go in, and what comes next. Pure.

    planned      preflight → announce → fence → drain → groups-leave → groups-move → stop-flow
                 → verify-fence → seal → open-target → switch → start-reverse
    source-lost  preflight → stop-flow → fence → seal → open-target → switch → start-reverse

Up to `switch` everything done can be undone, in reverse order; `switch` is one compare-and-set of
the active site, so it has either happened or not; behind it there is only forward.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class PromotionKind(StrEnum):
    """Whether the source is there to be drained."""

    PLANNED = "planned"
    SOURCE_LOST = "source-lost"


class PromotionState(StrEnum):
    """The outcome of a promotion so far."""

    RUNNING = "running"
    DONE = "done"
    ROLLED_BACK = "rolled-back"


class Direction(StrEnum):
    """The direction of an unfinished promotion."""

    FORWARD = "forward"
    BACK = "back"


class StepName(StrEnum):
    """One step; its value is what the journal and the terminal show."""

    PREFLIGHT = "preflight"
    ANNOUNCE = "announce"
    FENCE = "fence"
    DRAIN = "drain"
    GROUPS_LEAVE = "groups-leave"
    GROUPS_MOVE = "groups-move"
    STOP_FLOW = "stop-flow"
    VERIFY_FENCE = "verify-fence"
    SEAL = "seal"
    OPEN_TARGET = "open-target"
    SWITCH = "switch"
    START_REVERSE = "start-reverse"


class StepState(StrEnum):
    """The progress of one step. A step without a record has not been touched."""

    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    UNDONE = "undone"


ALLOWED: Final[Mapping[StepState | None, frozenset[StepState]]] = {
    None: frozenset({StepState.STARTED}),
    # A successor repeats the step that it finds started: STARTED again.
    StepState.STARTED: frozenset(
        {StepState.STARTED, StepState.DONE, StepState.FAILED, StepState.UNDONE}
    ),
    StepState.DONE: frozenset({StepState.UNDONE}),
    StepState.FAILED: frozenset({StepState.UNDONE}),
    StepState.UNDONE: frozenset(),
}

ORDER: Final[Mapping[PromotionKind, tuple[StepName, ...]]] = {
    PromotionKind.PLANNED: (
        StepName.PREFLIGHT,
        StepName.ANNOUNCE,
        StepName.FENCE,
        StepName.DRAIN,
        StepName.GROUPS_LEAVE,
        StepName.GROUPS_MOVE,
        StepName.STOP_FLOW,
        StepName.VERIFY_FENCE,
        StepName.SEAL,
        StepName.OPEN_TARGET,
        StepName.SWITCH,
        StepName.START_REVERSE,
    ),
    PromotionKind.SOURCE_LOST: (
        StepName.PREFLIGHT,
        StepName.STOP_FLOW,
        StepName.FENCE,
        StepName.SEAL,
        StepName.OPEN_TARGET,
        StepName.SWITCH,
        StepName.START_REVERSE,
    ),
}

# Steps that leave something behind. The others only look, wait, or (groups-move) write positions
# that are right whether or not the promotion goes on: they stay as they are in a rollback.
UNDOABLE: Final = frozenset(
    {
        StepName.ANNOUNCE,
        StepName.FENCE,
        StepName.STOP_FLOW,
        StepName.SEAL,
        StepName.OPEN_TARGET,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Do this step (again: every step is idempotent)."""

    step: StepName


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """Take back what this step did."""

    step: StepName


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Nothing is left to do; the promotion ends in this state."""

    state: PromotionState


Action = Run | Undo | Finish


def next_action(
    kind: PromotionKind, direction: Direction, states: Mapping[StepName, StepState]
) -> Action:
    """Return the next action of a controller that finds these step states.

    It depends on nothing but the journal, which is what lets any controller go on where another
    was killed.
    """
    order = ORDER[kind]
    if direction is Direction.FORWARD:
        for step in order:
            if states.get(step) is not StepState.DONE:
                return Run(step=step)
        return Finish(state=PromotionState.DONE)
    for step in reversed(order):
        touched = states.get(step) not in {None, StepState.UNDONE}
        if touched and step in UNDOABLE:
            return Undo(step=step)
    return Finish(state=PromotionState.ROLLED_BACK)


def may_move(current: StepState | None, following: StepState) -> bool:
    """Tell whether a step's record may go from one state to the other."""
    return following in ALLOWED[current]


def is_switched(states: Mapping[StepName, StepState]) -> bool:
    """Tell whether the point of no return is behind: nothing may be rolled back any more."""
    return states.get(StepName.SWITCH) is StepState.DONE
