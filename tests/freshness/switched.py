"""What a group was given on both sides of a switch, compared record by record. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group where it left: what it had been given, and the position it committed."""

    name: str
    lag: int
    """Records behind its position."""
    consumed: Sequence[bytes]
    position: int
    is_amid: bool = False
    """Whether it left amid records that both sites have written at once, in differing orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """One group after a switch; all numbers are records."""

    topic: str
    switch: str
    lag: int
    consumed: int
    delivered: int
    reread: int
    least: int
    """What any position that skips nothing re-reads: 0 unless the two logs' orders differ there."""
    skipped: int
    is_amid: bool

    @property
    def is_exact(self) -> bool:
        """Whether nothing was skipped, and nothing re-read that a position could have spared."""
        return self.skipped == 0 and self.reread == self.least and (self.is_amid or not self.least)


def compare(
    topic: str,
    switch: str,
    group: Group,
    delivered: Sequence[bytes],
    *,
    wanted: Collection[bytes],
    log: Sequence[bytes],
) -> Switched:
    """Hold what the target delivered to a group against what it had consumed.

    ``wanted`` are all records that a reader must be given, once; ``log`` is the whole target's.
    """
    consumed, given = set(group.consumed), set(delivered)
    return Switched(
        topic=topic,
        switch=switch,
        lag=group.lag,
        consumed=len(group.consumed),
        delivered=len(delivered),
        reread=sum(one in consumed for one in delivered) + len(delivered) - len(given),
        least=_least(consumed, log),
        skipped=sum(one not in consumed and one not in given for one in wanted),
        is_amid=group.is_amid,
    )


def _least(consumed: Collection[bytes], log: Sequence[bytes]) -> int:
    """Return how many consumed records lie behind the first that was not."""
    first = next((at for at, one in enumerate(log) if one not in consumed), len(log))
    return sum(one in consumed for one in log[first:])


_HEAD: Final = ("topic", "switch", "lag", "consumed", "delivered", "re-read", "least", "skipped")


def row(one: Switched) -> str:
    """Return one line of the table."""
    numbers = (one.lag, one.consumed, one.delivered, one.reread, one.least, one.skipped)
    cells = [f"{one.topic:<20}", f"{one.switch:<13}", *(f"{number:>9}" for number in numbers)]
    said = "exact" if one.is_exact else "MISSED"
    return " ".join([*cells, f"{said}{', amid both' if one.is_amid else ''}"])


def head() -> str:
    """Return the line above the table."""
    topic, switch, *others = _HEAD
    return " ".join([f"{topic:<20}", f"{switch:<13}", *(f"{one:>9}" for one in others)])


def all_exact(found: Iterable[Switched]) -> bool:
    """Whether something was found, and all of it is exact."""
    verdicts = [one.is_exact for one in found]
    return bool(verdicts) and all(verdicts)
