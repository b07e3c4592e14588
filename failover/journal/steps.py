"""The steps of a promotion, the order they go in, and what comes next. Pure.

    planned      preflight → announce → fence → drain → groups-leave → groups-move → stop-flow
                 → seal → verify-fence → open-target → switch → confirm → start-reverse
    source-lost  preflight → stop-flow → fence → seal → open-target → switch → confirm
                 → start-reverse

Up to `switch` everything done can be undone, in reverse order; `switch` is one compare-and-set of
the active site, so it has either happened or not; behind it there is only forward.

No step before the switch is trusted because it was done once. A controller that takes a promotion
over looks again at everything from the fence on (`to_repeat`), and the switch follows the last look
at once (`is_look_fresh`). `confirm` looks behind the switch, and says what has slipped through.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from wire.values import frozen


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
    CONFIRM = "confirm"
    START_REVERSE = "start-reverse"


class StepState(StrEnum):
    """The progress of one step. A step without a record has not been touched."""

    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    UNDONE = "undone"
    STALE = "stale"
    """Begun or done some time ago: what it found may not be true any more, so it is done again."""


ALLOWED: Final[Mapping[StepState | None, frozenset[StepState]]] = {
    None: frozenset({StepState.STARTED}),
    # A successor repeats the step that it finds started: STARTED again.
    StepState.STARTED: frozenset(
        {
            StepState.STARTED,
            StepState.DONE,
            StepState.FAILED,
            StepState.UNDONE,
            StepState.STALE,
        }
    ),
    StepState.DONE: frozenset({StepState.UNDONE, StepState.STALE}),
    StepState.FAILED: frozenset({StepState.UNDONE}),
    # A successor takes some steps back before it looks again, and does them anew.
    StepState.UNDONE: frozenset({StepState.STARTED}),
    StepState.STALE: frozenset({StepState.STARTED, StepState.UNDONE}),
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
        StepName.SEAL,
        StepName.VERIFY_FENCE,
        StepName.OPEN_TARGET,
        StepName.SWITCH,
        StepName.CONFIRM,
        StepName.START_REVERSE,
    ),
    PromotionKind.SOURCE_LOST: (
        StepName.PREFLIGHT,
        StepName.STOP_FLOW,
        StepName.FENCE,
        StepName.SEAL,
        StepName.OPEN_TARGET,
        StepName.SWITCH,
        StepName.CONFIRM,
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


LOOK_IS_FRESH_MS: Final = 2_000
"""The switch follows the end of `verify-fence` within this time, or it is looked again."""


@frozen
class Run:
    """Do this step (again: every step is idempotent)."""

    step: StepName


@frozen
class Undo:
    """Take back what this step did."""

    step: StepName


@frozen
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


@frozen
class Repeat:
    """What a controller does first that takes a promotion over: take back, then do again."""

    undo: tuple[StepName, ...]
    """In this order. The flow has to run again, and the target to be closed, for another look."""
    stale: tuple[StepName, ...]


def to_repeat(kind: PromotionKind, states: Mapping[StepName, StepState]) -> Repeat:
    """Return what a successor takes back and does again, of a promotion that goes forward.

    Nothing behind the switch. What was found and done before it rests on how things were then: a
    fence may have been lifted, topics made, records appended and positions committed since.
    """
    if is_switched(states):
        return Repeat(undo=(), stale=())
    order = ORDER[kind]
    first = StepName.FENCE if kind is PromotionKind.PLANNED else StepName.STOP_FLOW
    touched = [
        step
        for step in order[order.index(first) :]
        if states.get(step) not in {None, StepState.UNDONE}
    ]
    back = {StepName.SEAL, StepName.OPEN_TARGET}
    if kind is PromotionKind.PLANNED:
        back.add(StepName.STOP_FLOW)  # what is found missing, only a running flow can bring
    return Repeat(
        undo=tuple(step for step in reversed(touched) if step in back),
        stale=tuple(step for step in touched if step not in back),
    )


def is_look_fresh(kind: PromotionKind, looked_ms: int | None, now_ms: int) -> bool:
    """Tell whether the switch may follow a look that ended at this time.

    A controller that stood still in between, stopped by a signal or by its host, looks again.
    """
    if kind is PromotionKind.SOURCE_LOST:
        return True  # nobody can look
    return looked_ms is not None and 0 <= now_ms - looked_ms <= LOOK_IS_FRESH_MS


def may_move(current: StepState | None, following: StepState) -> bool:
    """Tell whether a step's record may go from one state to the other."""
    return following in ALLOWED[current]


def is_switched(states: Mapping[StepName, StepState]) -> bool:
    """Tell whether the point of no return is behind: nothing may be rolled back any more."""
    return states.get(StepName.SWITCH) is StepState.DONE
