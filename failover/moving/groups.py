"""Move consumer groups that have left the source: commit where they go on."""

import json
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

import trio

from failover.journal.facts import Facts, JsonValue, by_topic
from failover.sites.positions import commit, commit_each, stored_by, stored_by_each
from failover.sites.site import GroupChoice, Site
from offset_translation.group_positions import Leave, forward_only, where_to
from offset_translation.offset_map import OffsetMap
from wire.errors import ErrorCode
from wire.net import NetworkFault, RequestRefused
from wire.net.operations import (
    EARLIEST,
    GROUP_HAS_MEMBERS,
    GroupOffset,
    describe_groups,
    list_offsets,
)
from wire.net.side_by_side import ask_both
from wire.topic_partition import TopicPartition
from wire.values import frozen

V = TypeVar("V", bound=JsonValue)
GroupOffsets: TypeAlias = Mapping[TopicPartition, GroupOffset]
Commits: TypeAlias = Mapping[TopicPartition, tuple[int, str]]
HeldPositions: TypeAlias = Mapping[str, Mapping[TopicPartition, int]]
Codes: TypeAlias = Mapping[TopicPartition, ErrorCode]

GROUPS_POLL_S: Final = 0.05
POSITIONS_LISTED: Final = 5_000
"""So many positions are written out in the journal; those of more groups are only counted."""
GROUPS_AT_ONCE: Final = 500
"""Nobody may write meanwhile, so groups are not asked for one after the other."""
MAX_METADATA_BYTES: Final = 32_767
"""The metadata that fits a request, where the target takes only older versions of it."""
IS_AHEAD: Final = (
    "it is at {current} on the target, and {stored} on the source is {wanted} there: it has moved"
    " on there by itself, or was rewound on the source a moment ago; if it was rewound,"
    " `mirror offsets export` and `import` set it back before its consumers start"
)
HAS_MEMBERS: Final = (
    f"{Leave.GROUP_IS_ACTIVE.value}: stop them there, then have its positions committed by"
    " `mirror offsets export` and `import`"
)
GROUPS_BYTES: Final = 900_000
"""The JSON of what a step says of groups, at most: for people, and in the witness for good."""


def fitting(entries: Mapping[str, V], room: int) -> dict[str, V]:
    """Return as many of the entries, from the first on, as so many bytes of JSON hold."""
    fitted: dict[str, V] = {}
    for name, value in entries.items():
        room -= len(json.dumps({name: value}))
        if room < 0:
            break
        fitted[name] = value
    return fitted


@frozen
class Moved:
    """One group after its move: its positions on the target, and what was left, with the reason."""

    positions: Mapping[TopicPartition, int] = field(default_factory=dict)
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    left: Mapping[TopicPartition, str] = field(default_factory=dict)
    ahead: int = 0
    """In how many partitions it may pass over records on the target that it has not read."""
    cut: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Positions that lie before the target's log start, and the offset where that is."""
    bounded: Mapping[TopicPartition, int] = field(default_factory=dict)
    """How many source offsets are read again where the exact position is not known, at most."""


@frozen
class BothMaps:
    """The maps of the flow and of the other direction; the latter only where they are bounded."""

    forward: Mapping[TopicPartition, OffsetMap]
    backward: Mapping[TopicPartition, OffsetMap | None] = field(default_factory=dict)
    target_starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where the target's logs begin, of those that told it."""
    target_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where they end: a position behind that was left there by a log that is no more."""
    source_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where the source's logs end: a position behind that has nothing before it to read again."""
    held: HeldPositions = field(default_factory=dict)
    """Where this promotion has moved groups before."""


def choose(
    maps: BothMaps,
    source: Mapping[TopicPartition, GroupOffset],
    target: Mapping[TopicPartition, GroupOffset],
    *,
    is_idle: bool,
    held: Mapping[TopicPartition, int] = MappingProxyType({}),
) -> Moved:
    """Decide for every position of a group in moved partitions what to commit on the target.

    `held` is where this promotion has moved it before. A group that is there still has not moved on
    by itself: it follows the source, also back.
    """
    positions: dict[TopicPartition, int] = {}
    commits: dict[TopicPartition, int] = {}
    left: dict[TopicPartition, str] = {}
    cut: dict[TopicPartition, int] = {}
    bounded: dict[TopicPartition, int] = {}
    ahead = 0
    for partition, stored in sorted(source.items()):
        offset_map = maps.forward.get(partition)
        if offset_map is None:
            continue
        start = maps.target_starts.get(partition, 0)
        wanted = where_to(
            offset_map,
            stored.offset,
            backward=maps.backward.get(partition),
            target_log_start=start,
        )
        if wanted is None:
            left[partition] = Leave.NOTHING_MIRRORED.value
            continue
        current = target[partition].offset if partition in target else None
        decision = forward_only(wanted, _if_in_log(maps, partition, current))
        is_held = current == held.get(partition)
        if decision is Leave.TARGET_IS_AHEAD and not is_held:
            ahead += 1
            left[partition] = IS_AHEAD.format(
                current=current, stored=stored.offset, wanted=wanted.target_offset
            )
            continue
        if decision is not Leave.ALREADY_THERE and not is_idle:
            left[partition] = HAS_MEMBERS
            continue
        positions[partition] = wanted.target_offset
        if decision is not Leave.ALREADY_THERE:
            commits[partition] = wanted.target_offset
        if not wanted.is_exact and wanted.target_offset == start > 0:
            cut[partition] = start
        elif not wanted.is_exact:
            end = min(stored.offset, maps.source_ends.get(partition, stored.offset))
            bounded[partition] = max(0, end - wanted.source_offset)
    return Moved(
        positions=positions, committed=commits, left=left, ahead=ahead, cut=cut, bounded=bounded
    )


def _if_in_log(maps: BothMaps, partition: TopicPartition, current: int | None) -> int | None:
    """Return where a group stands on the target; None if nobody can have read as far."""
    if current is not None and current > maps.target_ends.get(partition, current):
        return None
    return current


@dataclass(slots=True)
class _Told:
    """What a step says of groups, filled in as they are moved."""

    committed: int = 0
    counted: int = 0
    listed: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    ahead: dict[str, int] = field(default_factory=dict)
    has_members: dict[str, int] = field(default_factory=dict)
    cut: dict[str, str] = field(default_factory=dict)
    bounded: dict[str, dict[str, int]] = field(default_factory=dict)
    unstable: dict[str, bool] = field(default_factory=dict)

    def note(self, name: str, moved: Moved) -> None:
        """Take what has become of one group."""
        self.committed += len(moved.committed)
        self.counted += len(moved.positions)
        if self.counted <= POSITIONS_LISTED:
            self.listed[name] = by_topic(moved.positions)
        if moved.cut:
            first, start = next(iter(moved.cut.items()))
            self.cut[name] = f"{first} begins at {start} ({len(moved.cut)} partitions)"
        if moved.bounded:
            reread = sum(moved.bounded.values())
            self.bounded[name] = {"partitions": len(moved.bounded), "reread": reread}
        behind = sum(why == HAS_MEMBERS for why in moved.left.values())
        if behind:
            self.has_members[name] = behind
        if moved.ahead:
            self.ahead[name] = moved.ahead
        if moved.left:
            (topic, partition), why = next(iter(moved.left.items()))
            self.left[name] = f"{topic}-{partition}: {why} ({len(moved.left)} partitions)"

    def facts(self, groups: int, room: int) -> Facts:
        """Return the facts; fifteen sixteenths of `room` at most."""
        left, cut = fitting(self.left, room // 16), fitting(self.cut, room // 16)
        bounded = fitting(self.bounded, room // 16)
        unstable = [*fitting(self.unstable, room // 8)]
        return {
            "groups": groups,
            "committed": self.committed,
            "positions": fitting(self.listed, room // 2),
            "left": left,
            "ahead": fitting(self.ahead, room // 16),
            "has_members": fitting(self.has_members, room // 16),
            "more_left": len(self.left) - len(left),
            "cut": cut,
            "more_cut": len(self.cut) - len(cut),
            "bounded": bounded,
            "more_bounded": len(self.bounded) - len(bounded),
            "unstable": unstable,
            "more_unstable": len(self.unstable) - len(unstable),
        }


async def move_groups(
    source: Site,
    target: Site,
    groups: GroupChoice,
    maps: BothMaps,
    *,
    timeout_ms: int,
    room: int = GROUPS_BYTES,
) -> Facts:
    """Translate the positions of all groups through the maps and commit them on the target.

    The call may be repeated: positions only move forward, unless a group still stands where an
    earlier call has moved it. The facts name each group that could not be committed, with the
    reason, each that does not go on exactly where it was, and each group whose transaction was
    still open after `timeout_ms`: such a group moves to its position before the transaction. The
    facts take at most fifteen sixteenths of `room`. Raises NetworkFault.
    """
    give_up_at = trio.current_time() + timeout_ms / 1000
    names, starts = await ask_both(
        partial(source.members, groups), partial(_starts, target, maps.forward)
    )
    maps, told = replace(maps, target_starts=starts), _Told()
    described = await describe_groups(target.cluster, list(names)) if names else {}
    idle = {name for name in names if name not in described or not described[name].members}
    for first in range(0, len(names), GROUPS_AT_ONCE):
        some = [*names][first : first + GROUPS_AT_ONCE]
        (on_source, still_open), on_target = await ask_both(
            partial(_settled_positions, source, some, give_up_at),
            partial(_positions, target, some),
        )
        told.unstable |= dict.fromkeys(still_open, True)
        for name, moved in (await _move(on_source, on_target, target, maps, idle=idle)).items():
            told.note(name, moved)
    return told.facts(len(names), room)


async def _starts(
    target: Site, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return where the target's logs begin, of those that tell it now."""
    if not partitions:
        return {}
    callers = {target.here(partition): partition for partition in partitions}
    answers = await list_offsets(target.cluster, callers, EARLIEST)
    return {
        callers[partition]: answer
        for partition, answer in answers.items()
        if not isinstance(answer, ErrorCode)
    }


async def _move(
    on_source: Mapping[str, GroupOffsets],
    on_target: Mapping[str, GroupOffsets | None],
    target: Site,
    maps: BothMaps,
    *,
    idle: Set[str],
) -> dict[str, Moved]:
    chosen = {
        group: choose(
            maps,
            stored,
            on_target[group] or {},
            is_idle=group in idle,
            held=maps.held.get(group, {}),
        )
        for group, stored in on_source.items()
    }
    answers = await _commit(
        target,
        {
            group: {
                partition: (at, on_source[group][partition].metadata)
                for partition, at in moved.committed.items()
            }
            for group, moved in chosen.items()
            if moved.committed
        },
    )
    return {group: _as_answered(moved, answers.get(group, {})) for group, moved in chosen.items()}


async def _settled_positions(
    source: Site, groups: Sequence[str], give_up_at: float
) -> tuple[dict[str, GroupOffsets], Sequence[str]]:
    """Return what groups have stored once no transaction is open that stores more, and whose is.

    Of those it is what they had stored before it.
    """
    settled: dict[str, GroupOffsets] = {}
    waits = groups
    while True:
        answers = await _positions(source, waits, require_stable=True)
        settled |= {group: stored for group, stored in answers.items() if stored is not None}
        waits = [group for group, stored in answers.items() if stored is None]
        if not waits or trio.current_time() >= give_up_at:
            break
        await trio.sleep(GROUPS_POLL_S)
    before = await _positions(source, waits) if waits else {}
    settled |= {group: stored or {} for group, stored in before.items()}
    return settled, waits


async def _positions(
    site: Site, groups: Sequence[str], *, require_stable: bool = False
) -> dict[str, GroupOffsets | None]:
    """Return what groups have stored, None where an open transaction may change it.

    Who was not told of in one question is asked for again.
    """
    stored: dict[str, GroupOffsets | None] = {}
    answers = await stored_by_each(site, groups, require_stable=require_stable)
    for group in groups:
        answer = answers[group]
        try:
            if isinstance(answer, NetworkFault) and not _is_unstable(answer):
                answer = await stored_by(site, group, require_stable=require_stable)
        except RequestRefused as refused:
            if not _is_unstable(refused):
                raise
            answer = refused
        stored[group] = None if isinstance(answer, NetworkFault) else answer
    return stored


def _is_unstable(fault: NetworkFault) -> bool:
    return isinstance(fault, RequestRefused) and fault.code is ErrorCode.UNSTABLE_OFFSET_COMMIT


async def _commit(target: Site, commits: Mapping[str, Commits]) -> dict[str, Codes]:
    """Commit with what groups have stored beside; without that where it is too much.

    The position counts. Return what came of each.
    """
    if not commits:
        return {}
    sent = {
        group: {
            partition: (at, text if len(text.encode()) <= MAX_METADATA_BYTES else "")
            for partition, (at, text) in positions.items()
        }
        for group, positions in commits.items()
    }
    answers: dict[str, Codes] = {}
    for group, answer in (await commit_each(target, sent)).items():
        codes = answer
        if isinstance(codes, NetworkFault):
            codes = await commit(target, group, sent[group])
        bare = {
            partition: (sent[group][partition][0], "")
            for partition, code in codes.items()
            if code is ErrorCode.OFFSET_METADATA_TOO_LARGE
        }
        again = await commit(target, group, bare) if bare else {}
        answers[group] = {**codes, **again}
    return answers


def _as_answered(moved: Moved, answers: Codes) -> Moved:
    """Return what has become of a group whose commits were answered so."""
    refused = {
        partition: HAS_MEMBERS if code in GROUP_HAS_MEMBERS else code.name
        for partition, code in answers.items()
        if code is not ErrorCode.NONE
    }
    return Moved(
        positions={
            partition: at for partition, at in moved.positions.items() if partition not in refused
        },
        committed={
            partition: at for partition, at in moved.committed.items() if partition not in refused
        },
        left={**moved.left, **refused},
        ahead=moved.ahead,
        cut={partition: at for partition, at in moved.cut.items() if partition not in refused},
        bounded={
            partition: again
            for partition, again in moved.bounded.items()
            if partition not in refused
        },
    )
