"""The rights that close a topic of Apache Kafka for writes: `failover` gives them. Pure.

Apache Kafka has no setting that would close a topic. Its authorizers let a DENY win over every
ALLOW, and let super users pass by both. So a closed topic denies WRITE to everybody, and the
mirror, whose flow back has to write there, is a super user. A second entry, for a principal that
nobody can be, notes that a fence of ours gave the DENY, and whether the DENY was there before and
is to stay. A DENY without a note is somebody else's.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from wire.net.rights import DENY, LITERAL, WRITE, Right

EVERYBODY: Final = "User:*"
SET_BY: Final = "User:write-fence/"
FOUND_BY: Final = "User:write-fence-found/"
ANYWHERE: Final = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """The client whose way back passes a closed topic; `was_closed` if others closed it first."""

    client: str
    was_closed: bool = False


def closing(topic: str) -> Right:
    """Return the entry that lets nobody write to a topic but super users."""
    return _denying(topic, EVERYBODY)


def noting(topic: str, note: Note) -> Right:
    """Return the entry that holds a note."""
    return _denying(topic, (FOUND_BY if note.was_closed else SET_BY) + note.client)


def noted(right: Right) -> Note | None:
    """Return the note that an entry holds; None for any other entry."""
    for prefix, was_closed in ((SET_BY, False), (FOUND_BY, True)):
        if right.principal.startswith(prefix):
            note = Note(client=right.principal.removeprefix(prefix), was_closed=was_closed)
            return note if right == noting(right.name, note) else None
    return None


def fenced(rights: Iterable[Right]) -> dict[str, set[Note]]:
    """Return the topics that are closed by a fence of ours, each with its notes."""
    held = set(rights)
    found: dict[str, set[Note]] = {}
    for right in held:
        note = noted(right)
        if note is not None and closing(right.name) in held:
            found.setdefault(right.name, set()).add(note)
    return found


def is_of_fence(right: Right) -> bool:
    """Tell whether an entry is one that a fence consists of, which holds for its site alone.

    An entry that closes topics by a prefix, or all of them, is somebody's own fence.
    """
    return replace(right, pattern=LITERAL) == closing(right.name) or noted(right) is not None


def without_fence(rights: Iterable[Right]) -> set[Right]:
    """Return the entries that are left where our fences are lifted; others' closings stay."""
    held = set(rights)
    lifted = {
        closing(topic)
        for topic, notes in fenced(held).items()
        if not any(note.was_closed for note in notes)
    }
    return {right for right in held - lifted if noted(right) is None}


def _denying(topic: str, principal: str) -> Right:
    return Right(name=topic, principal=principal, host=ANYWHERE, operation=WRITE, permission=DENY)
