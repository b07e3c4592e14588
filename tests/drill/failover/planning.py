"""What a round of a failover's drill does, drawn from a seed. Pure."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from failover.journal.steps import ORDER, PromotionKind, StepName
from tests.drill.failover.hooked import Mishap, plan_mishaps
from tests.drill.failover.subject import SETS


class What(Enum):
    """What becomes of a round's promotion."""

    PROMOTION = "promotion"
    ABORT = "abort"
    LEFT = "promotion that its operator leaves"
    """Its controller is killed, and `failover serve` ends it or takes it back."""
    DISASTER = "disaster"
    CUT = "disaster by a cut network"
    """Nobody of ours reaches the old site, and its own clients do."""
    FALSE_ALARM = "disaster that is taken back"
    """The old site is cut off, and is back before the switch."""


ENDPOINTS: Final = 2
"""So many lead clients to the active site."""
DISASTERS: Final = frozenset({What.DISASTER, What.CUT})
LOST: Final = DISASTERS | {What.FALSE_ALARM}
"""Promoted with --source-lost."""
TAKEN_BACK: Final = frozenset({What.ABORT, What.FALSE_ALARM})


class Fault(Enum):
    """What is done to it."""

    NOTHING = "nothing"
    KILL_CONTROLLER = "SIGKILL of the controller"
    STOP_CONTROLLER = "SIGSTOP of the controller for longer than its session"
    HANGUP_CONTROLLER = "SIGHUP of the controller"
    KILL_MIRROR = "SIGKILL of the mirror"
    STOP_MIRROR = "SIGSTOP of the mirror"
    HANGUP_MIRROR = "SIGHUP of the mirror"
    KILL_GUARD = "SIGKILL of `failover serve`"
    STOP_GUARD = "SIGSTOP of `failover serve`"
    KILL_SOURCE = "SIGKILL of the old site's broker"
    STOP_SOURCE = "SIGSTOP of the old site's broker"
    HANGUP_SOURCE = "SIGHUP of the old site's broker"
    KILL_TARGET = "SIGKILL of the new site's broker"
    STOP_TARGET = "SIGSTOP of the new site's broker"
    HANGUP_TARGET = "SIGHUP of the new site's broker"
    KILL_WITNESS = "SIGKILL of the witness"
    STOP_WITNESS = "SIGSTOP of the witness"
    HANGUP_WITNESS = "SIGHUP of the witness"
    WIPE_WITNESS = "the witness wiped"
    OLD_WITNESS = "the witness restored from an old copy"
    MAKE_TOPIC = "a topic made and written"
    GROW_TOPIC = "a topic grown"
    DELETE_TOPIC = "a topic deleted"
    FOREIGN = "writes on both sites, the new one open, while the mirror is down"
    OPEN_SOURCE = "the old site's fence lifted by hand"
    OPEN_TARGET = "the new site opened by hand"
    OTHER_FILE = "another operator's file with fewer topics"
    SECOND_OPERATOR = "the same command by another operator"
    SLOW_SOURCE = "the old site slow"
    SLOW_TARGET = "the new site slow"
    CUT_SOURCE = "the old site out of our programs' reach"
    CUT_TARGET = "the new site out of our programs' reach"


HARMLESS: Final = frozenset(
    {
        Fault.NOTHING,
        Fault.OTHER_FILE,
        Fault.SECOND_OPERATOR,
        Fault.MAKE_TOPIC,
        Fault.HANGUP_MIRROR,
        Fault.DELETE_TOPIC,
        Fault.KILL_GUARD,
    }
)
"""They excuse no record that is read again."""


class End(Enum):
    """What the operator decides about records that one site alone has."""

    QUARANTINE = "--quarantine"
    MERGE = "--merge"
    FROM_EARLIEST = "--from-earliest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One promotion and its fault: behind `step`, or within it `delay_s` after its beginning.

    `again` is the fault of the command that goes on with it. `plain_stays_s` is how long a plain
    consumer stays on the old site once a planned promotion was ordered. `hooks` are those that fail
    or hang, and `endpoint` is one that is killed beside the fault.
    """

    number: int
    what: What
    fault: Fault
    step: StepName
    is_behind: bool
    delay_s: float
    lasts_s: float
    end: End = End.QUARANTINE
    again: Fault = Fault.NOTHING
    plain_stays_s: float = 0.0
    hooks: Mapping[str, Mishap] = field(default_factory=dict)
    endpoint: int | None = None
    topic_set: str | None = None
    """The set that moves; None where the file has no sets."""
    beside: "Round | None" = None
    """What becomes of the other set meanwhile; None where it stays."""
    is_beside_first: bool = False
    """The other set's promotion is begun at once, and else with the fault."""

    def __str__(self) -> str:
        where = "behind" if self.is_behind else f"{self.delay_s:.2f} s into"
        again = "" if self.again is Fault.NOTHING else f", then {self.again.value}"
        hooks = "".join(f", {hook} {mishap.value}" for hook, mishap in self.hooks.items())
        killed = "" if self.endpoint is None else f", endpoint {self.endpoint} killed"
        fault = f"{self.fault.value} {where} {self.step}{again}{hooks}{killed}"
        of_set = "" if self.topic_set is None else f"{self.topic_set}: "
        when = "at once" if self.is_beside_first else "at the fault"
        beside = "" if self.beside is None else f"; beside it {when} {self.beside}"
        return f"{of_set}{self.what.value}, {fault}, {self.end.value}{beside}"


_WEIGHTS: Final = {
    What.PROMOTION: 5,
    What.ABORT: 3,
    What.LEFT: 1,
    What.DISASTER: 2,
    What.CUT: 1,
    What.FALSE_ALARM: 1,
}


def plan_round(seed: int, number: int) -> Round:
    """Return round `number` of a seed; it is the same whatever came before."""
    main, luck = _plan_main(seed, number), random.Random(f"sets {seed} {number}")
    moved, other = luck.sample([str(one.topic_set) for one in SETS], 2)
    main = replace(main, topic_set=moved)
    forgets = {main.fault, main.again} & {Fault.WIPE_WITNESS, Fault.OLD_WITNESS}
    if forgets or main.what is What.FALSE_ALARM or luck.random() < 0.3:
        return main
    return replace(
        main, beside=_plan_beside(luck, main, other), is_beside_first=luck.random() < 0.3
    )


def _plan_beside(luck: random.Random, main: Round, topic_set: str) -> Round:
    """Return what becomes of the other set; its controller alone is hit.

    Where a site is lost, the other set is given up there, too, if it is active there.
    """
    what = main.what if main.what in DISASTERS else luck.choice((What.PROMOTION, What.ABORT))
    steps = ORDER[PromotionKind.SOURCE_LOST if what in LOST else PromotionKind.PLANNED]
    if what in TAKEN_BACK:
        steps = steps[: steps.index(StepName.SWITCH)]
    return Round(
        number=main.number,
        what=what,
        fault=luck.choice((Fault.NOTHING, Fault.KILL_CONTROLLER, Fault.STOP_CONTROLLER)),
        step=luck.choice(steps),
        is_behind=luck.random() < 0.6,
        delay_s=luck.choice((0.0, 0.02, 0.1, 0.3)),
        lasts_s=0.5,
        end=main.end,
        topic_set=topic_set,
    )


def _plan_main(seed: int, number: int) -> Round:
    luck = random.Random(f"failover {seed} {number}")
    what = luck.choices([*_WEIGHTS], [*_WEIGHTS.values()])[0]
    steps = ORDER[PromotionKind.SOURCE_LOST if what in LOST else PromotionKind.PLANNED]
    if what in TAKEN_BACK:
        steps = steps[: steps.index(StepName.SWITCH)]
    fault, again = luck.choice([*Fault]), luck.choice([*Fault])
    if what in LOST:
        fault, again = _unless_of_source(fault), _unless_of_source(again)
    return Round(
        number=number,
        what=what,
        fault=fault,
        step=luck.choice(steps),
        is_behind=luck.random() < 0.6,
        delay_s=luck.choice((0.0, 0.02, 0.1, 0.3)),
        lasts_s=luck.choice((0.5, 2.0, 6.0)),
        end=luck.choices([*End], [5, 4, 2])[0],
        again=again if luck.random() < 0.3 else Fault.NOTHING,
        plain_stays_s=luck.choice((0.0, 0.0, 2.0)),
        hooks=plan_mishaps(seed, number),
        endpoint=random.Random(f"endpoints {seed} {number}").choice(
            (None, None, *range(ENDPOINTS))
        ),
    )


def _unless_of_source(fault: Fault) -> Fault:
    """The old site is down, or out of reach, already."""
    return Fault.KILL_CONTROLLER if fault.name.endswith("_SOURCE") else fault
