"""Which rights to topics travel with them: MirrorMaker 2's rules, or all of them. Pure.

MirrorMaker never lets anybody write to a mirrored topic: ALLOW WRITE stays behind, and of ALLOW
ALL only READ arrives (MirrorSourceConnector). Only rights to one topic by its name are copied, and
none is ever taken away.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from runtime.flow_section import AclSync

ALLOW: Final = 3
ALL_OPERATIONS: Final = 2
READ: Final = 3
WRITE: Final = 4
"""AclPermissionType and AclOperation, as they travel."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TopicRight:
    """One entry for one topic, named literally; numbers as in the protocol."""

    topic: str
    principal: str
    host: str
    operation: int
    permission: int


def rights_to_give(
    source: Iterable[TopicRight],
    target: Collection[TopicRight],
    *,
    mirrored: Mapping[str, str],
    sync: AclSync,
) -> list[TopicRight]:
    """Return the entries that the target lacks, of those that travel.

    ``mirrored`` are the source's topics, each with its name on the target.
    """
    if sync is AclSync.OFF:
        return []
    wanted = {
        replace(travelling, topic=mirrored[right.topic])
        for right in source
        if right.topic in mirrored and (travelling := _as_it_travels(right, sync)) is not None
    }
    return sorted(wanted.difference(target))


def _as_it_travels(right: TopicRight, sync: AclSync) -> TopicRight | None:
    if sync is AclSync.IDENTICAL or right.permission != ALLOW:
        return right
    if right.operation == WRITE:
        return None
    return replace(right, operation=READ) if right.operation == ALL_OPERATIONS else right
