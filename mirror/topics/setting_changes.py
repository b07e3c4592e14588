"""Settings of topics where both directions run at once: only changes travel. Pure.

While both directions run, each sees the other's changes as differences. One direction would take
back a value that the other one is about to bring, or both would swap two values for ever. Where the
sites differ and no run has seen the change, the site whose name comes first is right.
"""

from collections.abc import Mapping


class OwnChanges:
    """The changes on the source since this run began to look."""

    def __init__(self, source: str, target: str) -> None:
        self._is_first = source < target
        self._seen: dict[str, Mapping[str, str]] = {}
        self._due: dict[str, set[str]] = {}

    def due(
        self, topic: str, source: Mapping[str, str], target: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the source's settings that the target is to have."""
        seen = self._seen.get(topic)
        due = self._due.setdefault(topic, set())
        for name, value in source.items():
            if seen is None:
                has_changed = self._is_first or name not in target
            else:
                has_changed = seen.get(name) != value
            if has_changed:
                due.add(name)
            if target.get(name) == value:
                due.discard(name)
        due &= source.keys()
        self._seen[topic] = dict(source)
        return {name: value for name, value in source.items() if name in due}
