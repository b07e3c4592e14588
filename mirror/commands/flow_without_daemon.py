"""A flow seen from outside, when no daemon runs it: logs, map and groups."""

from collections.abc import Iterable, Mapping

from mirror.clusters.links import Links
from mirror.clusters.log_ends import Ends, LogEnds, read_ends, read_target_ends
from mirror.clusters.tail_reader import TailReader, topic_exists, topic_is_shown
from mirror.clusters.target_side import positions_on_target
from mirror.groups.checkpoint_log import GroupPartition
from mirror.map.believed import believed
from mirror.map.unbelieved_watch import told_unbelieved
from mirror.report.status import (
    NO_DAEMON,
    NOT_RUNNING,
    FlowReport,
    GroupReport,
    PartitionReport,
    group_report,
    with_begin,
    with_copy,
)
from offset_translation.map_records import map_topic_name
from offset_translation.map_state import MapState
from offset_translation.renamed_keys import Renaming, renamed
from offset_translation.topic_identity import NO_ID
from runtime.configuration.config import FlowConfig
from runtime.configuration.topic_names import TopicNames
from runtime.coordination.map_writers import UnbelievedRecords, Writers
from runtime.process.output import complain
from wire.errors import ErrorCode
from wire.net import Cluster, NetworkFault
from wire.net.operations import GroupOffset, fetch_offsets_of, list_groups
from wire.topic_partition import TopicPartition


async def observe(
    flow: FlowConfig, links: Links, writers: Writers, *, reason: str, now_ms: int
) -> FlowReport:
    """Return a report of the flow without its daemon; a site that does not answer is a fault."""
    faults: list[str] = []
    source: Ends = {}
    target: Ends = {}
    state = MapState()
    unbelieved = UnbelievedRecords(flow.mirrors)
    try:
        source = await source_ends(flow, links)
    except NetworkFault as fault:
        faults.append(f"{flow.source}: {fault}")
    try:
        state = await read_map(flow, links, writers, unbelieved)
        target = await read_target_ends(
            links.target_admin, flow.names, set(source) | set(state.maps)
        )
        state.advance({k: ends.end for k, ends in target.items() if isinstance(ends, LogEnds)})
    except NetworkFault as fault:
        faults.append(f"{flow.target}: {fault}")
    mirrored = {
        topic_partition for topic_partition in state.maps if flow.mirrors(topic_partition[0])
    }
    partitions = [
        with_copy(
            _partition(topic_partition, source.get(topic_partition), state, now_ms),
            flow.names.on_target(topic_partition.topic),
        )
        for topic_partition in sorted(set(source) | mirrored)
    ]
    groups: list[GroupReport] = []
    try:
        groups, untold = await _groups(flow, links, partitions)
        faults += untold
    except NetworkFault as fault:
        faults.append(f"groups: {fault}")
    return {
        "flow": flow.name,
        "role": NOT_RUNNING,
        "since_ms": now_ms,
        "reason": reason,
        "faults": faults,
        "refused_settings": [],
        "speed": None,
        "groups_by": "",
        "partitions": partitions,
        "groups": groups,
        "unbelieved_records": told_unbelieved(
            {map_topic_name(flow.source): unbelieved}, flow.told_set
        ),
    }


async def source_ends(flow: FlowConfig, links: Links) -> Ends:
    """Return the log ends of the source's partitions that the flow mirrors; raises NetworkFault."""
    view = await links.source_admin.metadata(refresh=True)
    return await read_ends(
        links.source_admin,
        {
            TopicPartition(topic.name, index)
            for topic in view.topics.values()
            if flow.mirrors(topic.name)
            and not topic.is_internal
            and topic.error_code == ErrorCode.NONE
            for index in topic.partitions
        },
    )


async def read_map(
    flow: FlowConfig,
    links: Links,
    writers: Writers,
    unbelieved: UnbelievedRecords | None = None,
    *,
    may_be_gone: bool = False,
) -> MapState:
    """Return the state by the map topic, an empty one where nobody has written any.

    Raises NetworkFault, and unless it `may_be_gone` MapGone.
    """
    left_out = UnbelievedRecords(flow.mirrors) if unbelieved is None else unbelieved
    state = await read_map_of(
        flow.source, links.target_admin, writers, left_out, may_be_gone=may_be_gone
    )
    if unbelieved is None:
        complain_of(left_out, flow)
    return state


async def read_map_back(
    flow: FlowConfig, links: Links, writers: Writers, unbelieved: UnbelievedRecords
) -> MapState:
    """Return the state by the map of what the flow back has brought, by our source's names.

    Without a flow back in the file nothing is read that we may not see. Raises NetworkFault.
    """
    topic = map_topic_name(flow.target)
    if not (flow.has_way_back or await topic_is_shown(links.source_admin, topic)):
        return MapState()
    return await read_map_of(
        flow.target, links.source_admin, writers, unbelieved, flow.names.way_home
    )


async def read_map_of(
    source_name: str,
    target: Cluster,
    writers: Writers,
    unbelieved: UnbelievedRecords,
    names: Renaming | None = None,
    *,
    may_be_gone: bool = False,
) -> MapState:
    """Return the state by a cluster's map of what came from a site.

    Raises NetworkFault, and unless it `may_be_gone` MapGone.

    Records of producers that are not among its `writers` are noted as `unbelieved`, and passed
    over. With `names` topics go by those, and others are left out.
    """
    state = MapState()
    reader = TailReader(target, map_topic_name(source_name), is_map=True)
    is_there = await topic_exists(target, reader.topic)
    if is_there:
        async for record in believed(reader, writers, unbelieved):
            key = record.key if names is None else renamed(record.key, names)
            if key is not None or record.key is None:
                state.replay(key, record.value)
    if not reader.log_end and not may_be_gone:
        await writers.require_unwritten(is_there=is_there)
    return state


def complain_of(unbelieved: UnbelievedRecords, flow: FlowConfig) -> None:
    """Tell of records of the flow's map that are not believed, if they speak of its topics."""
    if unbelieved.speaks_of_topics(flow.mirrors):
        _complain(flow.source, unbelieved, flow)


def complain_of_way_back(unbelieved: UnbelievedRecords, flow: FlowConfig) -> None:
    """Tell the same of the flow back's map, which has the target's names."""
    if unbelieved.speaks_of_topics(flow.brings):
        _complain(flow.target, unbelieved, flow)


def _complain(source_name: str, unbelieved: UnbelievedRecords, flow: FlowConfig) -> None:
    for line in told_unbelieved({map_topic_name(source_name): unbelieved}, flow.told_set):
        complain("mirror", line)


def _partition(
    topic_partition: TopicPartition,
    source: LogEnds | ErrorCode | None,
    state: MapState,
    now_ms: int,
) -> PartitionReport:
    offset_map = state.maps.get(topic_partition)
    mirrored = None if offset_map is None else offset_map.mirrored_source_end
    end = source.end if isinstance(source, LogEnds) else None
    lag = None if end is None or mirrored is None else max(0, end - mirrored)
    report: PartitionReport = {
        "topic": topic_partition[0],
        "partition": topic_partition[1],
        "state": NO_DAEMON,
        "since_ms": now_ms,
        "reason": source.name if isinstance(source, ErrorCode) else "",
        "advice": "",
        "source_end": end,
        "mirrored_source_end": mirrored,
        "mirrored_target_end": None if offset_map is None else offset_map.mirrored_target_end,
        "lag_records": lag,
        "lag_seconds": 0.0 if lag == 0 else None,
        "in_flight_bytes": 0,
        "lost_records": 0,
        "skipped_records": 0,
        "looped_batches": 0,
    }
    topic_id = state.topic_ids.get(topic_partition.topic, NO_ID)
    return with_begin(report, state.begins.of(topic_partition, topic_id))


async def _groups(
    flow: FlowConfig, links: Links, partitions: Iterable[PartitionReport]
) -> tuple[list[GroupReport], list[str]]:
    """Return the groups' lines, and what kept how many from being told; raises NetworkFault."""
    ends = {
        TopicPartition(one["topic"], one["partition"]): (
            one["source_end"],
            one["mirrored_target_end"],
        )
        for one in partitions
    }
    names = [
        group
        for group in sorted(await list_groups(links.source_admin))
        if flow.groups.matches(group)
    ]
    source = await fetch_offsets_of(links.source_admin, names)
    target = await positions_on_target(links.target_admin, flow.names, names)
    reports: list[GroupReport] = []
    untold: list[str] = []
    for group in names:
        here, there = source[group], target[group]
        if isinstance(here, NetworkFault):
            untold.append(f"{flow.source}: {here}")
        elif isinstance(there, NetworkFault):
            untold.append(f"{flow.target}: {there}")
        else:
            reports += _group(group, here, there, ends, flow.names)
    if not untold:
        return reports, []
    others = f", and {len(untold) - 1} groups more" if len(untold) > 1 else ""
    return reports, [f"groups: {untold[0]}{others}"]


def _group(
    group: str,
    source: Mapping[TopicPartition, GroupOffset],
    target: Mapping[TopicPartition, GroupOffset],
    ends: Mapping[TopicPartition, tuple[int | None, int | None]],
    names: TopicNames,
) -> Iterable[GroupReport]:
    for (topic, partition), position in sorted(source.items()):
        there = target.get(TopicPartition(topic, partition))
        if (topic, partition) in ends:
            group_partition: GroupPartition = (group, topic, partition)
            yield group_report(
                group_partition,
                state=NO_DAEMON,
                source_offset=position.offset,
                target_offset=None if there is None else there.offset,
                ends=ends[TopicPartition(topic, partition)],
                target_topic=names.on_target(topic),
            )
