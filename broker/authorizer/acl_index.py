"""The entries of the cluster, found by the name of a resource."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from wire.acls import (
    WILDCARD,
    AccessControlEntry,
    AclBinding,
    PatternType,
    ResourcePattern,
    ResourceType,
)

Entries: TypeAlias = frozenset[AccessControlEntry]
GARBLED: Final = None
"""In the place of entries that cannot be read: one of them may be a DENY."""


class AclIndex:
    """Entries by pattern; a question looks at the exact name, at `*` and at each prefix."""

    def __init__(self) -> None:
        self._held: dict[ResourcePattern, Entries | None] = {}
        self._lengths: dict[ResourceType, Counter[int]] = defaultdict(Counter)
        """How many prefixes of a type are so long."""

    def replace_all(self, held: Mapping[ResourcePattern, Entries | None]) -> None:
        """Hold these and no others."""
        self._held.clear()
        self._lengths.clear()
        for resource, entries in held.items():
            self.put(resource, entries)

    def put(self, resource: ResourcePattern, entries: Entries | None) -> None:
        """Hold these entries of a pattern; an empty set forgets it."""
        self._drop(resource)
        if entries is GARBLED or entries:
            self._held[resource] = entries
            if resource.pattern is PatternType.PREFIXED:
                self._lengths[resource.type][len(resource.name)] += 1

    def _drop(self, resource: ResourcePattern) -> None:
        if resource not in self._held:
            return
        del self._held[resource]
        if resource.pattern is PatternType.PREFIXED:
            lengths = self._lengths[resource.type]
            lengths[len(resource.name)] -= 1
            if not lengths[len(resource.name)]:
                del lengths[len(resource.name)]

    def of(self, resource: ResourcePattern) -> Entries | None:
        """Return a pattern's entries, GARBLED where they cannot be read."""
        return self._held.get(resource, frozenset())

    def about(self, kind: ResourceType, name: str) -> list[AccessControlEntry] | None:
        """Return the entries that speak of a resource, GARBLED where some cannot be read."""
        found: list[AccessControlEntry] = []
        for resource in self._speaking_of(kind, name):
            entries = self._held.get(resource, frozenset())
            if entries is GARBLED:
                return GARBLED
            found += entries
        return found

    def _speaking_of(self, kind: ResourceType, name: str) -> Iterator[ResourcePattern]:
        yield ResourcePattern(kind, name)
        if name != WILDCARD:
            yield ResourcePattern(kind, WILDCARD)
        for length in self._lengths.get(kind, ()):
            if length <= len(name):
                yield ResourcePattern(kind, name[:length], PatternType.PREFIXED)

    def of_type(self, kind: ResourceType) -> Collection[AclBinding] | None:
        """Return all entries of a type of resource, GARBLED where some cannot be read."""
        found: list[AclBinding] = []
        for resource, entries in self._held.items():
            if resource.type is kind:
                if entries is GARBLED:
                    return GARBLED
                found += (AclBinding(resource, entry) for entry in entries)
        return found

    def all(self) -> Mapping[ResourcePattern, Entries | None]:
        """Return everything that is held."""
        return MappingProxyType(self._held)
