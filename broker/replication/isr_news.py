"""Log lines about changes of the ISR: a restart changes thousands of them, in one line."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from wire.errors import ErrorCode

MOST_NAMED: Final = 3


@dataclass(slots=True)
class IsrNews:
    """The changes of ISRs, and the controller's refusals, that no line has told yet."""

    changed: dict[str, tuple[frozenset[int], frozenset[int]]] = field(default_factory=dict)
    """By partition: the ISR before all of it, and after."""
    refused: dict[ErrorCode, set[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.changed or self.refused)

    def note_changed(self, partition: str, before: frozenset[int], after: frozenset[int]) -> None:
        """Take in that a partition has another ISR."""
        first, _ = self.changed.pop(partition, (before, after))
        if first != after:
            self.changed[partition] = (first, after)

    def note_refused(self, partition: str, error: ErrorCode) -> None:
        """Take in that a partition was not given the ISR that its leader wants."""
        self.refused.setdefault(error, set()).add(partition)

    def take(self) -> str:
        """Return all of it as one line, and forget it."""
        parts = [_changes(self.changed)] if self.changed else []
        for error, partitions in self.refused.items():
            parts.append(f"{error.name} for {_names(partitions)}")
        self.changed, self.refused = {}, {}
        return "ISR: " + "; ".join(parts)


def _changes(changed: dict[str, tuple[frozenset[int], frozenset[int]]]) -> str:
    if len(changed) <= MOST_NAMED:
        return ", ".join(
            f"{partition} {sorted(after)} instead of {sorted(before)}"
            for partition, (before, after) in changed.items()
        )
    gained = Counter(broker for before, after in changed.values() for broker in after - before)
    lost = Counter(broker for before, after in changed.values() for broker in before - after)
    counts = [f"broker {broker} joined {gained[broker]}" for broker in sorted(gained)]
    counts += [f"broker {broker} left {lost[broker]}" for broker in sorted(lost)]
    return f"{_names(changed)} changed: {', '.join(counts)}"


def _names(partitions: Collection[str]) -> str:
    if len(partitions) <= MOST_NAMED:
        return ", ".join(sorted(partitions))
    first = ", ".join(sorted(partitions)[:MOST_NAMED])
    return f"{len(partitions)} partitions ({first}, ...)"
