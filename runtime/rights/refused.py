"""Who would be refused on the other site what it may do here: both sites' entries compared. Pure.

Kafka tells who may do what, and never who did. So whoever may read or write a mirrored topic, read
a group or use a transactional id on the source is asked about on the target, by the rules of its
authorizer: a DENY comes before every ALLOW. Super users pass by all entries, and no broker says who
they are; nor does one say whether all may do what no entry speaks of.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Final, NamedTuple

from wire.acls import EVERYBODY, IMPLIED_BY, WILDCARD, Operation, ResourceType
from wire.net.rights import ALLOW, DENY, PREFIXED, Right
from wire.values import frozen

MOST_ASKED: Final = 50_000
"""So many questions are asked of the target's entries; what is beyond is said to be unknown."""
NAMED: Final = 5
"""More resources of a kind are counted."""
NOBODY: Final = ""
"""Stands for whoever used a resource that nobody may use on the target."""

ASKED: Final = (
    (ResourceType.TOPIC, Operation.READ),
    (ResourceType.TOPIC, Operation.WRITE),
    (ResourceType.GROUP, Operation.READ),
    (ResourceType.TRANSACTIONAL_ID, Operation.WRITE),
)
"""What consumers and producers do."""
_WORDS: Final = {
    ResourceType.TOPIC: ("topic", "topics"),
    ResourceType.GROUP: ("group", "groups"),
    ResourceType.TRANSACTIONAL_ID: ("transactional id", "transactional ids"),
}


@frozen
class RefusedPrincipal:
    """Somebody who may do something on the source alone. `names` are the source's."""

    principal: str
    """NOBODY where no entry of the target lets anybody, and none of the source says who it was."""
    kind: ResourceType
    operation: Operation
    names: tuple[str, ...]
    host: str = WILDCARD

    def words(self, site: str) -> str:
        """Return it for people; names are for the caller to escape."""
        one, many = _WORDS[self.kind]
        told = ", ".join(self.names[:NAMED])
        more = len(self.names) - NAMED
        told += f" and {more} more" if more > 0 else ""
        what = f"{self.operation.name} of {one if len(self.names) == 1 else many} {told}"
        if self.principal == NOBODY:
            return f"nobody has a right on {site} to {what}"
        who = self.principal + ("" if self.host == WILDCARD else f" from {self.host}")
        return f"{who} would be refused on {site}: {what}"

    @property
    def document(self) -> Mapping[str, object]:
        """Return it for JSON."""
        return {
            "principal": self.principal or None,
            "host": self.host,
            "kind": self.kind.name.lower(),
            "operation": self.operation.name,
            "names": list(self.names),
        }


@frozen(kw_only=False)
class Compared:
    """Who would be refused; `is_cut` where there was too much to ask about."""

    refused: tuple[RefusedPrincipal, ...]
    is_cut: bool = False


@frozen
class Seen:
    """What applications use on the source: topics, with their names on the target, and groups."""

    topics: Mapping[str, str]
    groups: Collection[str]

    def on_target(self, kind: ResourceType) -> Mapping[str, str]:
        """Return the resources of a kind by the source's names."""
        if kind is ResourceType.TOPIC:
            return self.topics
        return {group: group for group in self.groups} if kind is ResourceType.GROUP else {}


def refused_after_switch(
    source: Collection[Right] | None, target: Collection[Right], seen: Seen
) -> Compared:
    """Return who would be refused on the target. Without `source`, where nobody may do anything.

    None stands for a source that keeps no rights, or does not tell them.
    """
    there = _Entries(target)
    here = None if source is None else _Entries(source)
    found: defaultdict[tuple[str, str, ResourceType, Operation], set[str]] = defaultdict(set)
    questions = iter(()) if here is None else _questions(here, there, seen)
    for question in islice(questions, MOST_ASKED):
        if _is_refused(question, here, there):
            right, kind, operation, name, _ = question
            found[right.principal, right.host, kind, operation].add(name)
    refused = [
        RefusedPrincipal(
            principal=who, host=host, kind=kind, operation=what, names=tuple(sorted(names))
        )
        for (who, host, kind, what), names in sorted(found.items())
    ]
    is_cut = next(questions, None) is not None
    return Compared((*refused, *_unusable(seen, here, there)), is_cut=is_cut)


class _Question(NamedTuple):
    """Whether somebody, of whom an ALLOW of the source speaks, may do something."""

    right: Right
    kind: ResourceType
    operation: Operation
    name: str
    on_target: str


def _questions(here: "_Entries", there: "_Entries", seen: Seen) -> Iterator[_Question]:
    """Yield what each ALLOW of the source lets, as far as no entry like it is on the target."""
    for kind, operation in ASKED:
        enough = _enough(operation)
        resources = seen.on_target(kind)
        for right in sorted(here.entries):
            if right.kind != kind or right.permission != ALLOW or right.operation not in enough:
                continue
            if kind is ResourceType.TRANSACTIONAL_ID:  # nobody knows which are used
                names: Iterable[str] = () if there.has_its_like(right) else (right.name,)
            elif right.is_of_one:
                names = (right.name,) if right.name in resources else ()
            elif there.has_its_like(right):
                names = ()
            else:
                names = filter(right.concerns, resources)
            for name in names:
                yield _Question(right, kind, operation, name, resources.get(name, name))


def _is_refused(question: _Question, here: "_Entries | None", there: "_Entries") -> bool:
    right, kind, operation, name, on_target = question
    asker = right.principal, right.host
    is_let_here = here is not None and here.lets(asker, kind, operation, name)
    return is_let_here and not there.lets(asker, kind, operation, on_target)


def _unusable(seen: Seen, here: "_Entries | None", there: "_Entries") -> Iterator[RefusedPrincipal]:
    """Yield what nobody may use on the target although entries there speak of it.

    Where the source has an entry that speaks of a resource, those whom it lets are asked about
    already. Where neither site has one, both treat the resource alike.
    """
    for kind, operation in ASKED:
        let, spoken = there.let(kind, operation), there.spoken_of(kind)
        spoken_here = None if here is None else here.spoken_of(kind)
        names = [
            name
            for name, on_target in sorted(seen.on_target(kind).items())
            if not let.covers(on_target)
            and (spoken_here is None or (spoken.covers(on_target) and not spoken_here.covers(name)))
        ]
        if names:
            yield RefusedPrincipal(
                principal=NOBODY, kind=kind, operation=operation, names=tuple(names)
            )


@cache
def _enough(operation: Operation) -> frozenset[Operation]:
    """Return the operations of which an ALLOW lets this one."""
    return frozenset({operation, Operation.ALL}) | IMPLIED_BY.get(operation, frozenset())


@frozen(kw_only=False)
class _Names:
    """All resources of which some entries speak."""

    literal: frozenset[str]
    prefixes: tuple[str, ...]

    def covers(self, name: str) -> bool:
        return name in self.literal or WILDCARD in self.literal or name.startswith(self.prefixes)


class _Entries:
    """The entries of one site, for look-ups by kind and principal."""

    def __init__(self, entries: Collection[Right]) -> None:
        self.entries = entries
        self._of_one: defaultdict[tuple[int, str, str], list[Right]] = defaultdict(list)
        self._of_many: defaultdict[tuple[int, str], list[Right]] = defaultdict(list)
        self._denied: set[tuple[int, str]] = set()
        for right in entries:
            if right.is_of_one:
                self._of_one[right.kind, right.principal, right.name].append(right)
            else:
                self._of_many[right.kind, right.principal].append(right)
            if right.permission == DENY:
                self._denied.add((right.kind, right.principal))

    def lets(
        self, asker: tuple[str, str], kind: ResourceType, operation: Operation, name: str
    ) -> bool:
        """Tell whether this principal may do it from this host, or from anywhere."""
        principal, host = asker
        enough = _enough(operation)
        is_let = False
        for one in self._about(principal, kind, name):
            if one.host not in {WILDCARD, host}:
                continue
            if one.permission == DENY and one.operation in {operation, Operation.ALL}:
                return False
            is_let |= one.permission == ALLOW and one.operation in enough
        return is_let

    def _about(self, principal: str, kind: int, name: str) -> Iterator[Right]:
        for who in {principal, EVERYBODY}:
            yield from self._of_one.get((kind, who, name), ())
            yield from (one for one in self._of_many.get((kind, who), ()) if one.concerns(name))

    def has_its_like(self, right: Right) -> bool:
        """Tell whether the same entry, or one of ALL, is here and nothing denies it in part."""
        if {(right.kind, right.principal), (right.kind, EVERYBODY)} & self._denied:
            return False
        held = (*self._of_many.get((right.kind, right.principal), ()),)
        held += (*self._of_one.get((right.kind, right.principal, right.name), ()),)
        return any(
            replace(one, operation=right.operation) == right
            and one.operation in {right.operation, Operation.ALL}
            for one in held
        )

    def let(self, kind: ResourceType, operation: Operation) -> _Names:
        """Return what some ALLOW of this operation concerns."""
        enough = _enough(operation)
        return _names(
            one
            for one in self.entries
            if one.kind == kind and one.permission == ALLOW and one.operation in enough
        )

    def spoken_of(self, kind: ResourceType) -> _Names:
        """Return what any entry concerns."""
        return _names(one for one in self.entries if one.kind == kind)


def _names(rights: Iterable[Right]) -> _Names:
    held = list(rights)
    return _Names(
        literal=frozenset(one.name for one in held if one.pattern != PREFIXED),
        prefixes=tuple({one.name for one in held if one.pattern == PREFIXED}),
    )
