"""The rights that close a site of Apache Kafka for writes: `failover` gives them. Pure.

Apache Kafka has no setting that would close a topic. Its authorizers let a DENY win over every
ALLOW, and let super users pass by both. So a closed topic denies WRITE to everybody, and the
mirror, whose flow back has to write there, is a super user. CREATE is denied to everybody as well,
so that no topic of the flow is made behind the fence (`runtime.rights.creation` says on what).

Beside each DENY a second one, for a principal that nobody can be, notes that a fence of ours gave
the DENY, and whether the DENY was there before and is to stay. A DENY without a note is somebody
else's.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from wire.acls import ResourceType
from wire.net.rights import CREATE, DENY, LITERAL, WRITE, Right
from wire.values import frozen

EVERYBODY: Final = "User:*"
SET_BY: Final = "User:write-fence/"
FOUND_BY: Final = "User:write-fence-found/"
ANYWHERE: Final = "*"


@frozen
class FenceNote:
    """The client whose way back passes a closed topic; `was_closed` if others closed it first."""

    client: str
    was_closed: bool = False


def closing(topic: str) -> Right:
    """Return the entry that lets nobody write to a topic but super users."""
    return _denying(topic, WRITE)


def barring(name: str, *, pattern: int = LITERAL, kind: int = ResourceType.TOPIC) -> Right:
    """Return the entry that lets nobody make these topics but super users."""
    return replace(_denying(name, CREATE), pattern=pattern, kind=kind)


def noting(closed: Right, note: FenceNote) -> Right:
    """Return the entry that holds a note about a DENY."""
    return replace(closed, principal=(FOUND_BY if note.was_closed else SET_BY) + note.client)


def noted(right: Right) -> FenceNote | None:
    """Return the note that an entry holds; None for any other entry."""
    for prefix, was_closed in ((SET_BY, False), (FOUND_BY, True)):
        if right.principal.startswith(prefix) and _may_be_ours(_noted_about(right)):
            return FenceNote(client=right.principal.removeprefix(prefix), was_closed=was_closed)
    return None


def closings(rights: Iterable[Right]) -> dict[Right, set[FenceNote]]:
    """Return what a fence of ours denies to everybody, each entry with its notes."""
    held = set(rights)
    found: dict[Right, set[FenceNote]] = {}
    for right in held:
        note, closed = noted(right), _noted_about(right)
        if note is not None and closed in held:
            found.setdefault(closed, set()).add(note)
    return found


def fenced(rights: Iterable[Right]) -> dict[str, set[FenceNote]]:
    """Return the topics that are closed by a fence of ours, each with its notes."""
    found = closings(rights).items()
    return {closed.name: notes for closed, notes in found if closed.operation == WRITE}


def of_fence(rights: Iterable[Right]) -> set[Right]:
    """Return the entries that a fence consists of, which hold for their site alone.

    An entry that closes topics for writes is one, whoever has given it: it is somebody's own fence.
    Whoever denies CREATE may mean both sites, so such an entry is one only where we noted it.
    """
    held = set(rights)
    ours = closings(held).keys()
    return {one for one in held if one in ours or noted(one) is not None or _closes_topics(one)}


def without_fence(rights: Iterable[Right]) -> set[Right]:
    """Return the entries that are left where our fences are lifted; others' closings stay."""
    held = set(rights)
    lifted = {
        closed
        for closed, notes in closings(held).items()
        if not any(note.was_closed for note in notes)
    }
    return {right for right in held - lifted if noted(right) is None}


def _noted_about(right: Right) -> Right:
    """Return the entry that a note would be about."""
    return replace(right, principal=EVERYBODY)


def _may_be_ours(right: Right) -> bool:
    bar = barring(right.name, pattern=right.pattern, kind=right.kind)
    is_bar = right == bar and right.kind in {ResourceType.TOPIC, ResourceType.CLUSTER}
    return is_bar or right == closing(right.name)


def _closes_topics(right: Right) -> bool:
    return replace(right, pattern=LITERAL) == closing(right.name)


def _denying(topic: str, operation: int) -> Right:
    return Right(
        name=topic, principal=EVERYBODY, host=ANYWHERE, operation=operation, permission=DENY
    )
