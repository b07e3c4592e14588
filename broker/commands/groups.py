"""`broker groups`: list, describe, reset-offsets, delete, delete-offsets."""

from collections.abc import Mapping, Sequence
from typing import Final

from broker.commands.group_members import members_of
from broker.commands.reaching import CommandFailed, reach, reason
from broker.commands.resetting import (
    Move,
    Rule,
    ShiftBy,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
    planned,
)
from broker.commands.showing import Row, show_json, show_rows, show_table
from broker.commands.topics import known_topics
from runtime.process.clock import wall_ms
from runtime.process.output import print_line
from runtime.program.agreement import require_agreement
from runtime.program.command import Options
from runtime.program.program import BadInput, ExitStatus
from runtime.program.table import NOTHING
from wire.errors import ErrorCode
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from wire.net import Cluster
from wire.net.group_operations import DEAD
from wire.net.operations import (
    EARLIEST,
    LATEST,
    GroupDescription,
    commit_group_offsets,
    describe_groups,
    fetch_group_offsets,
    list_groups,
    list_offsets,
)
from wire.net.retries import code_of
from wire.topic_partition import TopicPartition

WITHOUT_MEMBERS: Final = frozenset({"Empty", DEAD})
TITLES: Final = {"group": "GROUP", "state": "STATE", "type": "TYPE", "protocol": "PROTOCOL"}
POSITION_TITLES: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "position": "POSITION",
    "end": "END",
    "lag": "LAG",
}
MEMBER_TITLES: Final = {
    "member": "MEMBER",
    "instance": "INSTANCE",
    "client": "CLIENT",
    "host": "HOST",
    "partitions": "PARTITIONS",
}
MOVE_TITLES: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "before": "BEFORE",
    "after": "AFTER",
    "note": "NOTE",
}


async def show_groups(options: Options) -> int:
    """Show the groups of all brokers; brokers before Kafka 2.6 do not tell their states."""
    async with reach(options) as cluster:
        found = await list_groups(cluster)
    rows = [
        {
            "group": one.group_id,
            "state": one.group_state or None,
            "type": one.group_type or None,
            "protocol": one.protocol_type,
        }
        for name, one in sorted(found.items())
        if (options.group is None or options.group.fullmatch(name))
        and (options.state is None or options.state.lower() == one.group_state.lower())
    ]
    is_narrow = found and not rows
    show_rows(
        rows, TITLES, options, empty="no group matches" if is_narrow else "there are no groups"
    )
    return ExitStatus.DONE


async def describe(options: Options) -> int:
    """Show positions, lag and members of groups."""
    async with reach(options) as cluster:
        told = []
        for group in options.groups:
            known = await _known_group(cluster, group)
            told.append(
                {
                    "group": group,
                    "state": known.state,
                    "protocol": known.protocol_type,
                    "assignor": known.protocol,
                    "positions": [
                        one for one in await _positions(cluster, group) if _is_chosen(one, options)
                    ],
                    "members": await members_of(cluster, group, known),
                }
            )
    if options.json:
        show_json(told)
        return ExitStatus.DONE
    for one in told:
        assignor = f", assignor {one['assignor']}" if one["assignor"] else ""
        print_line(f"group {one['group']}: {one['state']}{assignor}")
        show_table(one["positions"], POSITION_TITLES, empty="no positions")
        show_table(one["members"], MEMBER_TITLES, empty="no members")
    return ExitStatus.DONE


def _is_chosen(position: Row, options: Options) -> bool:
    """Tell whether a position is shown; a lag that is not known may be over any limit."""
    if options.topic is not None and not options.topic.fullmatch(position["topic"]):
        return False
    lag = position["lag"]
    return options.lag_over is None or lag is None or lag > options.lag_over


async def _known_group(cluster: Cluster, group: str) -> GroupDescription:
    """Return a group's description; raises CommandFailed if there is none of that name."""
    known = (await describe_groups(cluster, [group]))[group]
    if known.error_code is ErrorCode.GROUP_ID_NOT_FOUND or known.state == DEAD:
        raise CommandFailed(f"group {group}: there is no such group; `broker groups list` has all")
    if known.error_code is not ErrorCode.NONE:
        raise CommandFailed(f"group {group}: {known.error_code.name}")
    return known


async def _positions(cluster: Cluster, group: str) -> list[Row]:
    positions = await fetch_group_offsets(cluster, group)
    ends = await list_offsets(cluster, positions, LATEST)
    rows: list[Row] = []
    for place, committed in sorted(positions.items()):
        end = ends[place]
        known_end = None if isinstance(end, ErrorCode) else end
        rows.append(
            {
                "topic": place.topic,
                "partition": place.partition,
                "position": committed.offset,
                "end": known_end,
                "lag": None if known_end is None else max(0, known_end - committed.offset),
            }
        )
    return rows


async def reset_offsets(options: Options) -> int:
    """Move a group's positions by a rule; the group has no members meanwhile.

    The status is FAILED where a position stays that was meant, or none was found.
    """
    rule = rule_of(options, wall_ms())
    async with reach(options) as cluster:
        known = (await describe_groups(cluster, [options.group]))[options.group]
        if known.error_code not in {ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND}:
            raise CommandFailed(f"group {options.group}: {known.error_code.name}")
        if known.error_code is ErrorCode.NONE and known.state not in WITHOUT_MEMBERS:
            raise CommandFailed(
                f"group {options.group} is {known.state}: stop its members first; "
                f"`broker groups describe {options.group}` names them"
            )
        moves = await _plan(cluster, options, rule)
        rows = [_move_row(move) for move in moves]
        empty = "no position would change: the group has none, name its topics with --topic"
        show_rows(rows, MOVE_TITLES, options, empty=empty, none=NOTHING)
        going = {one.place: (one.after, "") for one in moves if one.after is not None}
        if not options.dry_run and going:
            require_agreement(
                f"Move {len(going)} positions of group {options.group}?", is_given=options.yes
            )
            codes = await commit_group_offsets(cluster, options.group, going)
            _require_all(options.group, codes)
    are_all_told = bool(moves) and all(one.after is not None for one in moves)
    return ExitStatus.DONE if are_all_told else ExitStatus.FAILED


def rule_of(options: Options, now_ms: int) -> Rule:
    """Return the rule that was chosen; raises BadInput unless it is one."""
    by_duration, to_time = options.by_duration, options.to_datetime
    chosen: list[Rule | None] = [
        ToEarliest() if options.to_earliest else None,
        ToLatest() if options.to_latest else None,
        None if options.to_offset is None else ToOffset(options.to_offset),
        None if options.shift_by is None else ShiftBy(options.shift_by),
        None if to_time is None else ToTime(to_time),
        None if by_duration is None else ToTime(max(0, now_ms - by_duration)),
    ]
    rules = [rule for rule in chosen if rule is not None]
    if len(rules) != 1:
        raise BadInput(
            "where to? Give one of --to-earliest, --to-latest, --to-offset, --shift-by, "
            "--to-datetime, --by-duration"
        )
    return rules[0]


async def _plan(cluster: Cluster, options: Options, rule: Rule) -> list[Move]:
    committed = await fetch_group_offsets(cluster, options.group)
    positions = {place: one.offset for place, one in committed.items()}
    places = await _places(cluster, options.topic, positions)
    at_time: Mapping[TopicPartition, int | ErrorCode] = {}
    if isinstance(rule, ToTime):
        at_time = await list_offsets(cluster, places, rule.timestamp_ms)
    return planned(
        rule,
        places,
        positions,
        starts=await list_offsets(cluster, places, EARLIEST),
        ends=await list_offsets(cluster, places, LATEST),
        at_time=at_time,
    )


async def _places(
    cluster: Cluster,
    scopes: Sequence[tuple[str, int | None]],
    positions: Mapping[TopicPartition, int],
) -> list[TopicPartition]:
    """Return the partitions that are meant: those of the scopes, or all with a position."""
    if not scopes:
        return list(positions)
    places: dict[TopicPartition, None] = {}
    for topic, partition in scopes:
        [view] = await known_topics(cluster, [topic])
        if partition is not None and partition not in view.partitions:
            raise CommandFailed(
                f"topic {topic} has no partition {partition}: it has {len(view.partitions)}"
            )
        wanted = view.partitions if partition is None else [partition]
        places |= dict.fromkeys(TopicPartition(topic, index) for index in wanted)
    return list(places)


def _move_row(move: Move) -> Row:
    return {
        "topic": move.place.topic,
        "partition": move.place.partition,
        "before": move.before,
        "after": move.after,
        "note": move.why or ("" if move.before != move.after else "stays"),
    }


async def delete(options: Options) -> int:
    """Delete groups without members, with all their positions."""
    names = list(dict.fromkeys(options.groups))
    async with reach(options) as cluster:
        for group in names:
            await _known_group(cluster, group)
        require_agreement(
            f"Delete {', '.join(names)} and all positions stored there?", is_given=options.yes
        )
        refused = []
        for group in names:
            answer = await cluster.request_coordinator(
                group, DeleteGroupsRequest(groups_names=(group,))
            )
            code = answer.results[0].error_code
            if code:
                refused.append(f"group {group}: {reason(code)}")
            else:
                print_line(f"group {group}: deleted")
    if refused:
        raise CommandFailed("; ".join(refused))
    return ExitStatus.DONE


async def delete_offsets(options: Options) -> int:
    """Forget a group's positions of topics that no member reads (KIP-496)."""
    async with reach(options) as cluster:
        committed = await fetch_group_offsets(cluster, options.group)
        places = await _places(cluster, options.topic, dict.fromkeys(committed, 0))
        if not places:
            raise CommandFailed(f"group {options.group} has no positions")
        require_agreement(
            f"Forget {len(places)} positions of group {options.group}?", is_given=options.yes
        )
        answer = await cluster.request_coordinator(
            options.group, _forgetting(options.group, places)
        )
    if answer.error_code:
        raise CommandFailed(f"group {options.group}: {reason(answer.error_code)}")
    codes = {
        TopicPartition(topic.name, one.partition_index): code_of(one.error_code)
        for topic in answer.topics
        for one in topic.partitions
    }
    _require_all(options.group, codes)
    print_line(f"group {options.group}: {len(codes)} positions forgotten")
    return ExitStatus.DONE


def _forgetting(group: str, places: Sequence[TopicPartition]) -> OffsetDeleteRequest:
    by_topic: dict[str, list[int]] = {}
    for place in places:
        by_topic.setdefault(place.topic, []).append(place.partition)
    return OffsetDeleteRequest(
        group_id=group,
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(
                    OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                ),
            )
            for topic, indexes in by_topic.items()
        ),
    )


def _require_all(group: str, codes: Mapping[TopicPartition, ErrorCode]) -> None:
    """Raise CommandFailed with the partitions of which a position was refused."""
    refused = [
        f"{place.topic}-{place.partition}: {code.name}"
        for place, code in sorted(codes.items())
        if code is not ErrorCode.NONE
    ]
    if refused:
        raise CommandFailed(f"group {group}: {'; '.join(refused)}")
