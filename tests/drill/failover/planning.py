"""What a round of a failover's drill does, drawn from a seed. Pure."""

import random
from dataclasses import dataclass
from enum import Enum
from typing import Final

from failover.steps import ORDER, PromotionKind, StepName


class What(Enum):
    """What becomes of a round's promotion."""

    PROMOTION = "promotion"
    ABORT = "abort"
    DISASTER = "disaster"


class Fault(Enum):
    """What is done to it."""

    NOTHING = "nothing"
    KILL_CONTROLLER = "SIGKILL of the controller"
    STOP_CONTROLLER = "SIGSTOP of the controller for longer than its session"
    HANGUP_CONTROLLER = "SIGHUP of the controller"
    KILL_MIRROR = "SIGKILL of the mirror"
    STOP_MIRROR = "SIGSTOP of the mirror"
    HANGUP_MIRROR = "SIGHUP of the mirror"
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
    FOREIGN = "writes on both sites while the mirror is down"
    OTHER_FILE = "another operator's file with fewer topics"
    SLOW_SOURCE = "the old site slow"
    SLOW_TARGET = "the new site slow"


HARMLESS: Final = frozenset(
    {Fault.NOTHING, Fault.OTHER_FILE, Fault.MAKE_TOPIC, Fault.HANGUP_MIRROR, Fault.DELETE_TOPIC}
)
"""They excuse no record that is read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One promotion and its fault: behind `step`, or within it `delay_s` after its beginning."""

    number: int
    what: What
    fault: Fault
    step: StepName
    is_behind: bool
    delay_s: float
    lasts_s: float

    def __str__(self) -> str:
        where = "behind" if self.is_behind else f"{self.delay_s:.2f} s into"
        return f"{self.what.value}, {self.fault.value} {where} {self.step}"


def plan_round(seed: int, number: int) -> Round:
    """Return round `number` of a seed; it is the same whatever came before."""
    luck = random.Random(f"failover {seed} {number}")
    what = luck.choices([What.PROMOTION, What.ABORT, What.DISASTER], [6, 2, 2])[0]
    kind = PromotionKind.SOURCE_LOST if what is What.DISASTER else PromotionKind.PLANNED
    steps = ORDER[kind]
    if what is What.ABORT:
        steps = steps[: steps.index(StepName.SWITCH)]
    fault = luck.choice([*Fault])
    if what is What.DISASTER and fault.name.endswith("_SOURCE"):
        fault = Fault.KILL_CONTROLLER  # the old site is down already
    return Round(
        number=number,
        what=what,
        fault=fault,
        step=luck.choice(steps),
        is_behind=luck.random() < 0.6,
        delay_s=luck.choice((0.0, 0.02, 0.1, 0.3)),
        lasts_s=luck.choice((0.5, 2.0, 6.0)),
    )
