"""Mappings that one section takes over from others by `<<`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from runtime.configuration.reading.mistakes import ConfigurationError, mistake

MERGE: Final = "<<"
MERGE_TAG: Final = "tag:yaml.org,2002:merge"
MAX_MERGED: Final = 1_000
"""So many keys one section takes over by merging: an alias costs a few bytes, and names many."""


@dataclass(slots=True)
class Merge:
    """The mappings that one section takes over by `<<`, as YAML 1.1 has it.

    A key of the section's own goes before any that is taken over, and one of an earlier mapping
    before those of later ones.
    """

    file: str
    path: str
    taken: int = 0

    def into(self, node: yaml.MappingNode) -> dict[str, yaml.Node]:
        """Return the values of a mapping by their keys; raises ConfigurationError."""
        own: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, self.path, "a key must be a text")
            if key.value in own:
                raise self._error(key, self._name(key.value), "stands here twice")
            own[str(key.value)] = value
        if all(key.tag != MERGE_TAG for key, _ in node.value):
            return own
        values = {key: value for key, value in own.items() if key != MERGE}
        for mapping in self._mappings(own[MERGE]):
            for key, value in self.into(mapping).items():
                values.setdefault(key, value)
        return values

    def _mappings(self, node: yaml.Node) -> Iterator[yaml.MappingNode]:
        for one in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(one, yaml.MappingNode):
                raise self._error(one, self._name(MERGE), "must be a mapping or a list of them")
            # Limits also a mapping that takes over itself.
            self.taken += 1 + len(one.value)
            if self.taken > MAX_MERGED:
                raise self._error(one, self._name(MERGE), f"takes over more than {MAX_MERGED} keys")
            yield one

    def _name(self, key: str) -> str:
        return f"{self.path}.{key}".lstrip(".")

    def _error(self, node: yaml.Node, key: str, problem: str) -> ConfigurationError:
        return mistake(self.file, node, key or "the file", problem)
