"""What members see of the topics that their patterns match: by the rights that each beats with.

A pattern is kept with the topics that any of its members sees, and nobody is assigned a topic that
it does not see. What a member does not see is found out again when it beats after topics or rights
have changed. It is in no record: the next coordinator hears of it with the next beats, and tells no
member of a partition before.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from broker.fairness import Turns
from wire.values import frozen


@frozen
class RightsSeen:
    """The rights of whoever beats.

    sees      whether a topic may be described; None for whoever sees all
    changes   how often rights have changed
    """

    sees: Callable[[str], bool] | None = None
    changes: int = 0


SEES_ALL: Final = RightsSeen()


class SightBasis(NamedTuple):
    """What a finding rests on: it holds until one of these is another."""

    pattern: str
    topic_changes: int
    right_changes: int


class Hidden(NamedTuple):
    """The topics that a member's pattern matches and that it does not see."""

    occasion: SightBasis
    topics: frozenset[str]


async def unseen(names: Iterable[str], sight: RightsSeen) -> frozenset[str]:
    """Return what is not seen of these topics, leaving the others their turn."""
    if sight.sees is None:
        return frozenset()
    turns, found = Turns(), set[str]()
    for name in names:
        if not sight.sees(name):
            found.add(name)
        await turns.pass_on()
    return frozenset(found)
