"""Topic settings that were taken back on the source: on the target they are taken back, too. Pure.

Only settings that this run has seen set on the source count: the target's own settings stay.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping


class TakenBack:
    """The settings to take back, by topic, until it is done."""

    def __init__(self) -> None:
        self._seen: defaultdict[str, set[str]] = defaultdict(set)

    def due(
        self, source: Mapping[str, Mapping[str, str]], target: Mapping[str, Mapping[str, str]]
    ) -> dict[str, list[str]]:
        """Return the settings of each topic that the source had and the target still has.

        A topic that is missing in either mapping has no known settings.
        """
        due: dict[str, list[str]] = {}
        for topic, settings in source.items():
            gone = self._seen[topic] - settings.keys()
            self._seen[topic] |= settings.keys()
            if topic in target:
                self._seen[topic] -= gone - target[topic].keys()
                if left := gone & target[topic].keys():
                    due[topic] = sorted(left)
        return due

    def done(self, topic: str, names: Iterable[str]) -> None:
        """The target has its defaults again."""
        self._seen[topic] -= set(names)
