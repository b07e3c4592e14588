"""The rights to topics that travel with them: by MirrorMaker 2's rules, or all of them. Pure.

MirrorMaker never lets anybody write to a mirrored topic: ALLOW WRITE stays behind, and of ALLOW
ALL only READ arrives (MirrorSourceConnector). Only rights to one topic by its name are copied, and
none is ever taken away. A right that closes a topic for writes stays on the site that was closed:
the other site has to take writes.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from runtime.configuration.flow_section import AclSync
from runtime.write_fence import is_of_fence
from wire.net.topic_rights import ALL_OPERATIONS, ALLOW, LITERAL, READ, WRITE, TopicRight


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
    wanted = {
        replace(travelling, topic=mirrored[right.topic])
        for right in source
        if right.topic in mirrored and (travelling := as_it_travels(right, sync)) is not None
    }
    return sorted(wanted.difference(target))


def as_it_travels(right: TopicRight, sync: AclSync) -> TopicRight | None:
    """Return the entry for the source's name that the target gets; None for one that stays."""
    if sync is AclSync.OFF or right.pattern != LITERAL or is_of_fence(right):
        return None
    if sync is AclSync.IDENTICAL or right.permission != ALLOW:
        return right
    if right.operation == WRITE:
        return None
    return replace(right, operation=READ) if right.operation == ALL_OPERATIONS else right
