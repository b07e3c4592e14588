"""What a fence by rights denies so that nobody makes a topic of a flow behind it. Pure.

Kafka lets somebody make a topic who has CREATE on the cluster, and else who has CREATE on the
topic. So both are denied:

    as long as a site is closed          on the flow's names and prefixes, on `*` where it is `.*`
    while a promotion moves from there   on the cluster and on `*` as well

Between promotions nobody is kept from making other topics. Somebody with CREATE on the cluster can
make one of the flow's then, and anybody one whose name a pattern takes that is no prefix; `failover
serve` closes it.

Where `allow.everyone.if.no.acl.found` lets all do what no entry speaks of, the first entry for the
cluster, or for names that no other one concerns, would shut out all who use them. There ours is
given only beside somebody else's that speaks of all the same.
"""

from collections.abc import Collection, Iterable
from typing import Final

from runtime.configuration.flow_section import PatternSet
from runtime.rights.closing import barring, closings, noted
from runtime.rights.needed import named_by
from wire.acls import CLUSTER_NAME, WILDCARD, ResourceType
from wire.net.rights import CREATE, LITERAL, PREFIXED, Right

OF_CLUSTER: Final = barring(CLUSTER_NAME, kind=ResourceType.CLUSTER)
OF_MOVING: Final = frozenset({OF_CLUSTER, barring(WILDCARD)})
"""What only a promotion needs, unless a pattern is `.*`."""


def bars(patterns: PatternSet, *, is_moving: bool = False) -> frozenset[Right]:
    """Return the entries that keep everybody from making topics of these patterns."""
    named = (one for one in named_by(patterns) if one.widened is None)
    found = frozenset(barring(one.name, pattern=one.pattern) for one in named)
    return found | OF_MOVING if is_moving and patterns.include else found


def harmless(wanted: Iterable[Right], held: Iterable[Right]) -> frozenset[Right]:
    """Return those entries beside which somebody else's speaks of all that they concern."""
    others = without_bars(held)
    return frozenset(one for one in wanted if any(_speaks_of_all(other, one) for other in others))


def without_bars(held: Iterable[Right]) -> set[Right]:
    """Return the entries without those by which a fence of ours keeps topics from being made."""
    everything = set(held)
    ours = closings(everything).keys()
    return {
        one
        for one in everything
        if one.operation != CREATE or (one not in ours and noted(one) is None)
    }


def words_of(denied: Collection[Right]) -> list[str]:
    """Return on what CREATE is denied, in words: `orders*`, `*`, `the cluster`."""
    return sorted({_words(one) for one in denied})


def why_not_barred(lacking: Collection[Right], open_to_all: str) -> str:
    """Return why topics can be made on a closed site whose rights let these entries not be given.

    `open_to_all` says why all may do what no entry speaks of.
    """
    names = ", ".join(words_of(lacking))
    return (
        f"no ACL of others speaks of {names}, and a DENY of CREATE as the first one would shut out"
        f" all who need none there ({open_to_all}); such a topic is closed a moment later, and what"
        " it took until then is listed"
    )


def _speaks_of_all(other: Right, one: Right) -> bool:
    """Tell whether an entry concerns all that another one does."""
    if other.kind != one.kind:
        return False
    if other.pattern == LITERAL and other.name == WILDCARD:
        return True
    if other.pattern == PREFIXED:
        return one.name != WILDCARD and one.name.startswith(other.name)
    return other.name == one.name and one.pattern == LITERAL


def _words(bar: Right) -> str:
    if bar.kind == ResourceType.CLUSTER:
        return "the cluster"
    return f"{bar.name}*" if bar.pattern == PREFIXED else bar.name
