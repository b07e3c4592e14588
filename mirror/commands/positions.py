"""`mirror offsets` and `mirror translate`: positions of groups and single offsets on both sides.

They ask the clusters, not the daemon, so they answer while it is down and while a site is lost.
"""

import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from enum import Enum
from itertools import groupby
from typing import Final

import trio

from mirror.clusters.links import Links, open_links
from mirror.commands.group_rows import Exactness, GroupRow, GroupsSeen, summary, where_it_belongs
from mirror.commands.outside_view import OutsideView, known_groups, observe, observe_group
from mirror.commands.position_table import rows_table
from mirror.commands.position_words import (
    FILE_LIMIT_BYTES,
    Export,
    GroupName,
    Import,
    Line,
    OffsetsWords,
    PartitionOffset,
    PositionsUnreadable,
    Show,
    read_lines,
    write_lines,
)
from mirror.map.known_writers import open_writers
from offset_translation.translation import NotYet, translate_back
from runtime.configuration.config import Configuration, FlowConfig
from runtime.process.clock import now_ms
from runtime.process.output import print_line
from runtime.program.page import Part, show_page
from wire.errors import ErrorCode
from wire.net import NetworkFault
from wire.net.operations import commit_group_offsets
from wire.topic_partition import TopicPartition
from wire.values import frozen

STEP_TIMEOUT_S: Final = 60.0
"""Of each step: what all groups take together grows with their number."""
DONE: Final = 0
NOT_ALL: Final = 1


class CommandFailed(Exception):
    """The target did not answer, or what was asked for is not there; says which."""


@frozen
class PositionOptions:
    """The options that both commands have."""

    flow: str | None
    as_json: bool
    is_reverse: bool = False


async def offsets(configuration: Configuration, words: OffsetsWords, asked: PositionOptions) -> int:
    """Show, export or import positions; return the exit status.

    Raises CommandFailed, PositionsUnreadable.
    """
    shown = words.group if isinstance(words, Show) else None
    async with _looking(configuration, asked, shown) as (flow, links, found):
        match words:
            case Show(group=group):
                rows = await _rows_of(flow, links, found, group)
                _print_rows(flow, found, rows, asked)
                return DONE
            case Export(groups=groups):
                return await _export(flow, links, found, groups, as_json=asked.as_json)
            case Import(file=file):
                try:
                    if file.stat().st_size > FILE_LIMIT_BYTES:
                        raise PositionsUnreadable(f"{file}: has more than {FILE_LIMIT_BYTES} bytes")
                    # As bytes: reading as text would make "\n" of a carriage return in a name.
                    text = file.read_bytes().decode("utf-8")
                except (OSError, UnicodeDecodeError) as fault:
                    raise PositionsUnreadable(f"{file}: {fault}") from fault
                lines = read_lines(str(file), text)
                for line in lines:
                    check_within(flow, found.sight, str(file), line)
                return await _import(flow, links, lines, as_json=asked.as_json)


async def translate(
    configuration: Configuration, what: GroupName | PartitionOffset, asked: PositionOptions
) -> int:
    """Print where a position lies on the other side; return the exit status.

    1: a position has no exact counterpart. Raises CommandFailed.
    """
    shown = what.group if isinstance(what, GroupName) else None
    async with _looking(configuration, asked, shown) as (flow, links, found):
        if isinstance(what, PartitionOffset):
            line = translate_place(found.sight, what, flow, is_reverse=asked.is_reverse)
            print_line(json.dumps(line) if asked.as_json else str(line["told"]))
            return DONE if line["exact"] else NOT_ALL
        if asked.is_reverse:
            raise CommandFailed("--reverse translates a single TOPIC:PARTITION:OFFSET")
        rows = await _rows_of(flow, links, found, what.group)
        _print_rows(flow, found, rows, asked)
        return DONE


def translate_place(
    sight: GroupsSeen, position: PartitionOffset, flow: FlowConfig, *, is_reverse: bool
) -> dict[str, object]:
    """Return one offset's counterpart: `topic`, `partition`, `from`, `to`, `exact`, `told`."""
    names = flow.names
    topic = (names.on_source(position.topic) if is_reverse else None) or position.topic
    forward = sight.maps.get(TopicPartition(topic, position.partition))
    backward = sight.backward.get(TopicPartition(topic, position.partition))
    here, there = (flow.target, flow.source) if is_reverse else (flow.source, flow.target)
    to: int | None = None
    if is_reverse and backward is None:
        back = NotYet.UNMIRRORED if forward is None else translate_back(forward, position.offset)
        is_exact = not isinstance(back, NotYet)
        why = "the partition has not been mirrored"
        if not isinstance(back, NotYet):
            to = back
        elif forward is not None:
            why = back.value
    else:
        maps = (backward, forward) if is_reverse else (forward, backward)
        to, exactness = where_it_belongs(*maps, position.offset)
        is_exact = exactness is Exactness.EXACT
        why = exactness.value
    name = f"{position.topic}:{position.partition}"
    counterpart = f"{topic if is_reverse else names.on_target(topic)}:{position.partition}"
    goal = "nowhere" if to is None else f"{there} {counterpart}:{to}"
    told = f"{here} {name}:{position.offset} -> {goal} ({'exact' if is_exact else why})"
    return {
        "topic": position.topic,
        "partition": position.partition,
        "from": position.offset,
        "to": to,
        "exact": is_exact,
        "told": told,
    }


async def _rows_of(
    flow: FlowConfig, links: Links, found: OutsideView, group: str, *, is_named: bool = True
) -> list[GroupRow]:
    """Return a group's rows; raises CommandFailed if one that was named has none."""
    with trio.fail_after(STEP_TIMEOUT_S):
        rows = await observe_group(flow, links, found, group)
    if is_named and not rows:
        raise CommandFailed(f"flow {flow.name}: group {group} has no position here")
    return rows


async def _export(
    flow: FlowConfig, links: Links, found: OutsideView, named: Sequence[str], *, as_json: bool
) -> int:
    """Print where each group goes on at the target, as lines that `import` takes, or as JSON."""
    positions: list[Mapping[str, object]] = []
    untranslated: list[Mapping[str, object]] = []
    groups = named
    if not named:
        with trio.fail_after(STEP_TIMEOUT_S):
            groups = await known_groups(flow, links, found)
    for group in groups:
        rows = await _rows_of(flow, links, found, group, is_named=bool(named))
        known = [(r.group, r.topic, r.partition, r.translated) for r in rows]
        there = flow.names.on_target
        lines = [(g, there(t), p, to) for g, t, p, to in known if to is not None]
        if not as_json:
            sys.stdout.write(write_lines(lines))
        positions += [
            {"group": g, "topic": t, "partition": p, "offset": to} for g, t, p, to in lines
        ]
        untranslated += [
            {"group": g, "topic": t, "partition": p} for g, t, p, to in known if to is None
        ]
    if as_json:
        body = {"flow": flow.name, "positions": positions, "untranslated": untranslated}
        print_line(json.dumps(body))
    return NOT_ALL if untranslated else DONE


async def _import(flow: FlowConfig, links: Links, lines: Sequence[Line], *, as_json: bool) -> int:
    """Commit a file's positions, each of which is known to lie within its log."""
    status = DONE
    groups: list[Mapping[str, object]] = []
    in_order = sorted(lines, key=lambda line: line.group)
    for group, of_group in groupby(in_order, key=lambda line: line.group):
        positions = {
            TopicPartition(line.topic, line.partition): (line.offset, "") for line in of_group
        }
        with trio.fail_after(STEP_TIMEOUT_S):
            codes = await commit_group_offsets(links.target_admin, group, positions)
        refused = Counter(code for code in codes.values() if code is not ErrorCode.NONE)
        told = f"{len(positions)} positions committed"
        if refused:
            status = NOT_ALL
            reasons = ", ".join(sorted(_reason(code) for code in refused))
            told = f"refused for {refused.total()}: {reasons}"
        if not as_json:
            print_line(f"group {group}: {told}")
        counts = {code.name: count for code, count in sorted(refused.items())}
        groups.append({"group": group, "positions": len(positions), "refused": counts})
    if as_json:
        print_line(json.dumps({"flow": flow.name, "groups": groups}))
    return status


def _reason(code: ErrorCode) -> str:
    if code in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS}:
        return "the group has members on the target"
    return code.name


def check_within(flow: FlowConfig, sight: GroupsSeen, name: str, line: Line) -> None:
    """Raise PositionsUnreadable for a position that the target's log does not have."""
    source = flow.names.on_source(line.topic)
    topic_partition = TopicPartition("" if source is None else source, line.partition)
    offset_map, start = sight.maps.get(topic_partition), sight.target_starts.get(topic_partition)
    if offset_map is None or start is None:
        raise PositionsUnreadable(
            f"{name}:{line.number}: {line.topic}-{line.partition} is not mirrored by this flow"
        )
    if not start <= line.offset <= offset_map.target_end:
        raise PositionsUnreadable(
            f"{name}:{line.number}: offset {line.offset} lies outside the target's log of "
            f"{line.topic}-{line.partition}, {start} to {offset_map.target_end}"
        )


def _print_rows(
    flow: FlowConfig, found: OutsideView, rows: Sequence[GroupRow], asked: PositionOptions
) -> None:
    if asked.as_json:
        body = {
            "flow": flow.name,
            "source_fault": found.source_fault,
            "positions": [asdict(row) for row in rows],
        }
        print_line(json.dumps(body, default=_plain))
        return
    parts: list[Part] = [f"flow {flow.name}: group {rows[0].group}: {summary(rows)}"]
    if found.source_fault is not None:
        parts.append(f"  by what was mirrored last: {found.source_fault}")
    show_page([*parts, rows_table(rows, now_ms())])


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{value!r} does not go into JSON")


@asynccontextmanager
async def _looking(
    configuration: Configuration, asked: PositionOptions, group: str | None
) -> AsyncIterator[tuple[FlowConfig, Links, OutsideView]]:
    """Give the flow that is meant, connections of it, and what a first look has found."""
    flow = pick_flow(configuration, asked.flow)
    clusters = configuration.clusters
    try:
        async with (
            open_links(flow, clusters[flow.source], clusters[flow.target]) as links,
            open_writers(configuration) as writers_of,
        ):
            with trio.fail_after(STEP_TIMEOUT_S):
                found = await observe(flow, links, writers_of, group)
            yield flow, links, found
    except NetworkFault as fault:
        raise CommandFailed(f"flow {flow.name}: {flow.target}: {fault}") from fault
    except trio.TooSlowError as fault:
        raise CommandFailed(f"flow {flow.name}: no answer within {STEP_TIMEOUT_S:g} s") from fault


def pick_flow(configuration: Configuration, name: str | None) -> FlowConfig:
    """Return the flow of that name, the only one without a name; raises CommandFailed."""
    names = ", ".join(flow.name for flow in configuration.flows)
    if name is None:
        if len(configuration.flows) == 1:
            return configuration.flows[0]
        raise CommandFailed(f"the file has several flows: choose one with --flow: {names}")
    for flow in configuration.flows:
        if flow.name == name:
            return flow
    raise CommandFailed(f"--flow {name}: there is no such flow; there are: {names or 'none'}")
