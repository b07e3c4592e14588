"""Move consumer groups: wait until they have left the source, then commit where they go on."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import trio

from failover.journal import Facts, JsonValue
from failover.site import Place, Site, by_topic
from offset_translation.group_positions import GroupPosition, Leave, decide
from offset_translation.offset_map import OffsetMap
from runtime.config import PatternSet
from wire.errors import ErrorCode
from wire.net.operations import (
    GroupOffset,
    commit_group_offsets,
    describe_groups,
    fetch_group_offsets,
)

V = TypeVar("V", bound=JsonValue)

GROUPS_POLL_S: Final = 0.05
POSITIONS_LISTED: Final = 5_000
"""So many positions are written out in the journal; those of more groups are only counted."""
MAX_METADATA_BYTES: Final = 32_767
"""What a request has room for, where the target takes only older versions of it."""
GROUPS_BYTES: Final = 100_000
"""What the facts of both steps take in a journal together, unless more is known to be free."""


def fitting(entries: Mapping[str, V], room: int) -> dict[str, V]:
    """Return as many of the entries, from the first on, as so many bytes of JSON hold."""
    found: dict[str, V] = {}
    for name, value in entries.items():
        room -= len(json.dumps({name: value}))
        if room < 0:
            break
        found[name] = value
    return found


async def wait_left(
    source: Site, groups: PatternSet, *, timeout_ms: int, room: int = GROUPS_BYTES
) -> Facts:
    """Return once no group on the source has members, or after `timeout_ms` all the same.

    A client that does not follow the witness stays until it is stopped; its group moves to the
    position that it has committed. Names take a quarter of `room`. Raises NetworkFault.
    """
    members = await source.members(groups)
    at_first = sum(1 for count in members.values() if count)
    with trio.move_on_after(timeout_ms / 1000):
        while any(members.values()):
            await trio.sleep(GROUPS_POLL_S)
            members = await source.members(groups)
    staying = {name: count for name, count in members.items() if count}
    named = fitting(staying, room // 4)
    return {
        "groups": len(members),
        "had_members": at_first,
        "still_members": named,
        "more_members": len(staying) - len(named),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What became of one group: the positions it has on the target, and what was left and why."""

    positions: Mapping[Place, int] = field(default_factory=dict)
    committed: Mapping[Place, int] = field(default_factory=dict)
    left: Mapping[Place, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BothMaps:
    """The maps of the flow, and where they are bounded, those of the other direction."""

    forward: Mapping[Place, OffsetMap]
    backward: Mapping[Place, OffsetMap | None] = field(default_factory=dict)


def choose(
    maps: BothMaps,
    source: Mapping[Place, GroupOffset],
    target: Mapping[Place, GroupOffset],
    *,
    is_idle: bool,
) -> Moved:
    """Decide for every position of a group in moved partitions what to commit on the target."""
    positions: dict[Place, int] = {}
    commits: dict[Place, int] = {}
    left: dict[Place, str] = {}
    for place, found in sorted(source.items()):
        offset_map = maps.forward.get(place)
        if offset_map is None:
            continue
        current = target[place].offset if place in target else None
        position = GroupPosition(
            source_offset=found.offset, applied_source_offset=None, target_offset=current
        )
        decision = decide(
            offset_map, position, group_is_idle=is_idle, backward=maps.backward.get(place)
        )
        match decision:
            case Leave.ALREADY_THERE:
                assert current is not None, "what is already there is known"
                positions[place] = current
            case Leave():
                left[place] = decision.value
            case _:
                positions[place] = commits[place] = decision.target_offset
    return Moved(positions=positions, committed=commits, left=left)


async def move_groups(
    source: Site,
    target: Site,
    groups: PatternSet,
    maps: BothMaps,
    *,
    room: int = GROUPS_BYTES,
) -> Facts:
    """Translate the positions of all groups through the maps and commit them on the target.

    May be repeated: positions only move forward. What could not be committed is in the facts, by
    group, with the reason. All that is written out takes three quarters of `room`. Raises
    NetworkFault.
    """
    names = await source.members(groups)
    listed: dict[str, dict[str, dict[str, int]]] = {}
    left: dict[str, str] = {}
    committed = counted = 0
    described = await describe_groups(target.cluster, list(names)) if names else {}
    for name in names:
        is_idle = name not in described or not described[name].members
        moved = await _move(source, target, name, maps, is_idle=is_idle)
        committed += len(moved.committed)
        counted += len(moved.positions)
        if counted <= POSITIONS_LISTED:
            listed[name] = by_topic(moved.positions)
        if moved.left:
            (topic, partition), why = next(iter(moved.left.items()))
            left[name] = f"{topic}-{partition}: {why} ({len(moved.left)} partitions)"
    named = fitting(left, room // 4)
    return {
        "groups": len(names),
        "committed": committed,
        "positions": fitting(listed, room // 2),
        "left": named,
        "more_left": len(left) - len(named),
    }


async def _move(source: Site, target: Site, group: str, maps: BothMaps, *, is_idle: bool) -> Moved:
    there = await fetch_group_offsets(source.cluster, group)
    moved = choose(maps, there, await fetch_group_offsets(target.cluster, group), is_idle=is_idle)
    if not moved.committed:
        return moved
    metadata = {place: there[place].metadata for place in moved.committed}
    refused = _refused((await _commit(target, group, moved.committed, metadata)).items())
    if not refused:
        return moved
    return Moved(
        positions={place: at for place, at in moved.positions.items() if place not in refused},
        committed={place: at for place, at in moved.committed.items() if place not in refused},
        left={**moved.left, **refused},
    )


async def _commit(
    target: Site, group: str, offsets: Mapping[Place, int], metadata: Mapping[Place, str]
) -> dict[Place, ErrorCode]:
    """Commit with what the group has stored beside; without that where it is too much.

    The position counts. Return what came of each.
    """
    told = {
        place: text if len(text.encode()) <= MAX_METADATA_BYTES else ""
        for place, text in metadata.items()
    }
    answers = await commit_group_offsets(
        target.cluster, group, {place: (at, told[place]) for place, at in offsets.items()}
    )
    bare = {
        place: (offsets[place], "")
        for place, code in answers.items()
        if code is ErrorCode.OFFSET_METADATA_TOO_LARGE
    }
    return (
        {**answers, **await commit_group_offsets(target.cluster, group, bare)} if bare else answers
    )


def _refused(answers: Iterable[tuple[Place, ErrorCode]]) -> dict[Place, str]:
    return {place: code.name for place, code in answers if code is not ErrorCode.NONE}
