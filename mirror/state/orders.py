"""The orders that people have given for a flow at run time, as they lie in the witness. Pure.

    pauses     hold until they are taken back: of the flow, of a topic, of one partition
    restarts   are done once, by the daemon that runs the flow or the next one, and taken out; one
               that was given before a switch of the active site is taken out undone. What is
               begun is marked in the node first, so that no other daemon does it again

The node is changed by commands and by the daemon, each against the version that it has read.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, field, replace
from enum import Enum
from hashlib import blake2b
from typing import Any, Final, Self

from runtime.coordination.witness import WitnessGarbled
from runtime.untrusted_json import LARGEST_INT32, read_json, text, whole_number
from wire.values import frozen

_TOPIC_CHARACTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)


POLICY: Final = "the policy of "
"""With the flow's name: who orders what its configuration wants done."""


class OrderRefused(ValueError):
    """An order that makes no sense; says why."""


class How(Enum):
    """The ways to restart a partition."""

    RETRY = "retry"
    """Look again where it goes on; what stopped it may be over."""
    SKIP = "skip"
    """Go on behind what cannot be mirrored, this once."""
    QUARANTINE = "quarantine"
    """Set aside what only the target has, and leave it out of the flow back."""
    MERGE = "merge"
    """Keep what only the target has; the flow back appends it late."""
    ANEW = "anew"
    """Delete the target's copy of the topic and mirror it from the earliest record."""


ONCE: Final = frozenset({How.SKIP, How.QUARANTINE, How.MERGE, How.ANEW})
"""They give something up or decide what stays, so what somebody has begun is not begun again."""
DECISIONS: Final = frozenset({How.QUARANTINE, How.MERGE, How.ANEW})
"""They decide about what the target alone has."""


@frozen
class Scope:
    """A flow, one of its topics, or one partition of it."""

    topic: str | None = None
    partition: int | None = None

    @classmethod
    def parse(cls, text: str | None) -> Self:
        """Read ``TOPIC`` or ``TOPIC:PARTITION``; None is the whole flow. Raises OrderRefused."""
        if text is None:
            return cls()
        topic, colon, number = text.partition(":")
        if not topic or not _TOPIC_CHARACTERS.issuperset(topic):
            raise OrderRefused(f"{text!r} is neither TOPIC nor TOPIC:PARTITION")
        if colon and not (number.isascii() and number.isdigit() and len(number) < 10):
            raise OrderRefused(f"{text!r}: {number!r} is not a partition")
        return cls(topic=topic, partition=int(number) if colon else None)

    def covers(self, topic: str | None, partition: int | None) -> bool:
        """Whether it holds for that topic or partition as a whole."""
        return self.topic is None or (
            self.topic == topic and (self.partition is None or self.partition == partition)
        )

    def __str__(self) -> str:
        """Return it as it is given on the command line."""
        if self.topic is None:
            return "the flow"
        return self.topic if self.partition is None else f"{self.topic}:{self.partition}"


@frozen
class Pause:
    """Nothing of this scope is mirrored."""

    scope: Scope
    by: str
    since_ms: int


@frozen
class Restart:
    """A restart of a scope, done once; the time tells equal ones apart."""

    scope: Scope
    how: How
    by: str
    at_ms: int
    epoch: int | None = None
    """The active site's when it was given; None where no promotion concerns the flow."""
    begun: frozenset[str] = field(default=frozenset(), compare=False)
    """The marks of what some daemon has begun: `mark_of` a partition, or of a topic for ANEW."""

    @property
    def is_wanted_by_policy(self) -> bool:
        """Whether nobody in person has ordered it."""
        return self.by.startswith(POLICY)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        known = {**asdict(self), "how": self.how.value, "begun": sorted(self.begun)}
        return {name: one for name, one in known.items() if name != "begun" or one}

    @classmethod
    def of(cls, found: Any) -> Self:  # noqa: ANN401 - JSON
        """Return the restart of its JSON; raises ValueError, KeyError, TypeError."""
        return cls(
            scope=_scope(found["scope"]),
            how=How(found["how"]),
            by=text(found["by"]),
            at_ms=whole_number(found["at_ms"]),
            epoch=None if found.get("epoch") is None else whole_number(found["epoch"]),
            begun=frozenset(map(text, found.get("begun", ()))),
        )


def mark_of(topic: str, partition: int | None = None) -> str:
    """Return the mark of a topic or a partition; short, as a node has room for a megabyte."""
    return blake2b(f"{topic}:{partition}".encode(), digest_size=6).hexdigest()


@frozen
class Orders:
    """All orders of one flow that are in force."""

    pauses: tuple[Pause, ...] = ()
    restarts: tuple[Restart, ...] = ()

    def pause_of(self, topic: str | None = None, partition: int | None = None) -> Pause | None:
        """Return the pause of the partition, or without arguments of the flow; None without one."""
        pauses = (pause for pause in self.pauses if pause.scope.covers(topic, partition))
        return next(pauses, None)

    def keeper_of(self, topic: str) -> Pause | None:
        """Return a pause of a topic or a part of it: its copy is not to be deleted meanwhile."""
        pauses = (pause for pause in self.pauses if pause.scope.topic in {None, topic})
        return next(pauses, None)

    def paused(self, pause: Pause) -> Self:
        """Return the orders with one more pause; parts of what it covers need none any more.

        Raises OrderRefused if that much is paused already.
        """
        scope = pause.scope
        known = self.pause_of(scope.topic, scope.partition)
        if known is not None:
            raise OrderRefused(f"{known.scope} is paused already, by {known.by}")
        others = self._outside(scope)
        return replace(self, pauses=(*others, pause))

    def resumed(self, scope: Scope) -> Self:
        """Return the orders without the pauses of a scope and its parts.

        Raises OrderRefused if there are none, or if more than the scope is paused.
        """
        others = self._outside(scope)
        wider = next(
            (pause for pause in others if pause.scope.covers(scope.topic, scope.partition)), None
        )
        if wider is not None:
            raise OrderRefused(f"{wider.scope} is paused as a whole, by {wider.by}: resume that")
        if len(others) == len(self.pauses):
            raise OrderRefused(f"{scope} is not paused")
        return replace(self, pauses=others)

    def decided(self, decision: Restart) -> tuple[Self, tuple[Restart, ...]]:
        """Return the orders with one more decision, and the earlier ones that it replaces.

        Of two that wait, the earlier would save what the later deletes, or the other way round, by
        chance. So the last word holds, and it is told what it replaces. Raises OrderRefused where
        the whole topic is to be begun anew, and the decision is about a part of it.
        """
        waiting = [restart for restart in self.restarts if restart.how in DECISIONS]
        replaced = tuple(
            one
            for one in waiting
            if one.scope == decision.scope
            or decision.scope.covers(one.scope.topic, one.scope.partition)
        )
        for one in waiting:
            is_part = one.scope.covers(decision.scope.topic, decision.scope.partition)
            if one.how is How.ANEW and is_part and one not in replaced:
                raise OrderRefused(
                    f"{one.scope} is to begin anew, ordered by {one.by}, which is not done yet:"
                    f" decide about all of {one.scope}, or wait"
                )
        left = self.without(replaced)
        return replace(left, restarts=(*left.restarts, decision)), replaced

    def outlived(self, epoch: int) -> tuple[Restart, ...]:
        """Return the restarts that were given under another epoch of the active site, or none.

        Somebody decided about what was the matter then. It may have been done already, by a daemon
        that did not live to take it out, and what stops a partition now is something else. An
        epoch that is later than ours is one of which we have not heard yet.
        """
        return tuple(one for one in self.restarts if one.epoch is None or one.epoch < epoch)

    def begun(self, restart: Restart, marks: Iterable[str]) -> tuple[Self, frozenset[str]]:
        """Return the orders with one of their restarts marked so, and the marks that are new."""
        [known] = (one for one in self.restarts if one == restart)
        new = frozenset(marks) - known.begun
        marked = replace(known, begun=known.begun | new)
        restarts = tuple(marked if one == restart else one for one in self.restarts)
        return replace(self, restarts=restarts), new

    def without(self, done: Iterable[Restart]) -> Self:
        """Return the orders without the restarts that have been done."""
        gone = frozenset(done)
        return replace(
            self, restarts=tuple(restart for restart in self.restarts if restart not in gone)
        )

    def _outside(self, scope: Scope) -> tuple[Pause, ...]:
        return tuple(
            pause
            for pause in self.pauses
            if not scope.covers(pause.scope.topic, pause.scope.partition)
        )

    def encode(self) -> bytes:
        """Return the JSON of the node."""
        return json.dumps(
            {
                "pauses": [asdict(order) for order in self.pauses],
                "restarts": [order.plain() for order in self.restarts],
            }
        ).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return what a node says; raises WitnessGarbled."""
        try:
            document = read_json(data)
            return cls(
                pauses=tuple(
                    Pause(
                        scope=_scope(order["scope"]),
                        by=text(order["by"]),
                        since_ms=whole_number(order["since_ms"]),
                    )
                    for order in document["pauses"]
                ),
                restarts=tuple(Restart.of(order) for order in document["restarts"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise WitnessGarbled(f"witness: no valid orders: {data[:200]!r}: {error}") from error

    @classmethod
    def read(cls, path: str, data: bytes) -> Self:
        """Return what the node at a path says; raises WitnessGarbled naming it and what to do."""
        try:
            return cls.decode(data)
        except WitnessGarbled as garbled:
            raise WitnessGarbled(
                f"{garbled}; delete the node {path} of the witness, and order again what is to be"
                " paused or restarted"
            ) from garbled


def _scope(found: Any) -> Scope:  # noqa: ANN401 - JSON
    topic, partition = found["topic"], found["partition"]
    return Scope(
        topic=None if topic is None else text(topic),
        partition=None if partition is None else whole_number(partition, LARGEST_INT32),
    )
