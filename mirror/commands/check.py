"""`mirror check`: ask both clusters, and tell what a run would do. No cluster is changed."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

import trio

from mirror.clusters.admin import (
    CreateTopic,
    GrowTopic,
    SetConfigs,
    TopicAction,
    apply,
    topic_configs,
)
from mirror.clusters.links import Links, open_links
from mirror.clusters.tail_reader import topic_is_shown
from mirror.commands.checks.clocks import cluster_clocks, told_clock, witness_clock
from mirror.commands.checks.closing import closing
from mirror.commands.checks.distances import RECEIVE, SEND, measure_distances, told_distances
from mirror.commands.checks.encryption import told_encryption
from mirror.commands.checks.exposed_file import told_exposed_file
from mirror.commands.checks.internal_topics import internal_topics
from mirror.commands.checks.refusals import refusals
from mirror.commands.checks.start import told_start
from mirror.commands.checks.versions import (
    OF_SOURCE,
    OF_TARGET,
    Spoken,
    ask_versions,
    lacking_versions,
    told_versions,
)
from mirror.commands.status import workers_of
from mirror.flow.pair_watch import told_pair
from mirror.flow.run_decision import Role, Witnessed, decide_duty
from mirror.groups.group_polling import WITHOUT_POSITIONS
from mirror.map.known_writers import open_writers
from mirror.state.orders import Orders
from mirror.topics.changes import ABOUT_SETTINGS
from mirror.topics.choice import wanted_topics
from mirror.topics.effective_settings import warn_by_topic
from mirror.topics.plan import plan_topics, topic_shape
from mirror.topics.rights import (
    NEEDED,
    SOURCE_RIGHTS,
    TARGET_RIGHTS,
    OperationBit,
    lacking,
    told_lacking,
)
from mirror.topics.sight import exists, is_hidden, with_hidden
from offset_translation.map_records import map_topic_name
from runtime.configuration.config import ClusterConfig, Configuration, FlowConfig
from runtime.configuration.running_flow import explain, find_differences
from runtime.configuration.witness_session import open_witness
from runtime.coordination.witness import ActiveSite, FlowCommand, WitnessGarbled
from runtime.coordination.zookeeper import SessionState, ZooKeeper, ZooKeeperFault
from runtime.pair.opening import look_at_pair, open_clusters
from runtime.pair.witness_rights import describe_access
from runtime.rights.authorized import topic_operations
from wire.errors import ErrorCode
from wire.kernel.chosen import walker
from wire.net import NetworkFault, open_cluster
from wire.net.cluster import Cluster
from wire.net.metadata import ClusterView
from wire.net.operations import list_groups
from wire.net.topic_creation import TopicRefused

TIMEOUT_S: Final = 20.0
MOST_GROUPS: Final = 20
"""More are counted, not named."""
MOST_TRIED: Final = 100
"""The target is asked whether it would do so much of what is planned; the rest is alike."""
CLIENT_ID: Final = "mirror-check"


class CheckFailed(Exception):
    """A run would not work; the message names what does not answer."""


async def check(configuration: Configuration) -> AsyncIterator[str]:
    """Yield the lines of the check; raises CheckFailed."""
    roles: dict[str, list[str]] = {}
    wrong: list[str] = []
    for line in told_exposed_file(configuration):
        yield line
    try:
        async for line in _ask_witness(configuration, roles, wrong):
            yield line
    except (ZooKeeperFault, WitnessGarbled) as fault:
        raise CheckFailed(str(fault)) from fault
    spoken: dict[str, list[Spoken]] = {}
    async for line in _ask_clusters(configuration, spoken):
        yield line
    for flow in configuration.flows:
        for line in _without(flow, spoken):
            yield f"flow {flow.name}: {line}"
        by = walker(may_be_native=flow.has_chunk_kernel)
        yield f"flow {flow.name}: what is fetched is walked by {by.words}"
        lines, of_flow = await _check_flow(configuration, flow, roles[flow.name])
        for line in lines:
            yield f"flow {flow.name}: {line}"
        wrong += [f"flow {flow.name}: {line}" for line in of_flow]
    if wrong:
        raise CheckFailed("; ".join(wrong))


async def _ask_clusters(
    configuration: Configuration, spoken: dict[str, list[Spoken]]
) -> AsyncIterator[str]:
    """Yield what is to be said of each cluster; fill in what its brokers speak."""
    used = {name for flow in configuration.flows for name in (flow.source, flow.target)}
    for name in sorted(used):
        for line in told_encryption(configuration.clusters[name]):
            yield line
        spoken[name], lines = await _look_at(configuration.clusters[name])
        for line in lines:
            yield line


async def _ask_witness(
    configuration: Configuration, roles: dict[str, list[str]], wrong: list[str]
) -> AsyncIterator[str]:
    """Yield what the witness says; fill in the role of each flow, and what is wrong.

    Raises ZooKeeperFault, WitnessGarbled.
    """
    coordination = configuration.coordination
    async with open_witness(coordination) as zookeeper:
        yield f"witness {coordination.zookeeper}: answers"
        access, open_to_others = await describe_access(zookeeper, coordination)
        wrong += [] if open_to_others is None else [open_to_others]
        yield access
        yield told_clock(await witness_clock(zookeeper, coordination.path))
        async with open_clusters(configuration) as clusters:
            seen = await look_at_pair(configuration, zookeeper, clusters)
        lines, contradiction = told_pair(seen)
        for line in lines:
            yield line
        wrong += [] if contradiction is None else [contradiction]
        for flow in configuration.flows:
            roles[flow.name] = await _role(zookeeper, configuration, flow)
            paths = coordination.paths
            differing = await find_differences(zookeeper, paths, flow)
            wrong += [explain(flow, differing)] if differing else []


async def _role(zookeeper: ZooKeeper, configuration: Configuration, flow: FlowConfig) -> list[str]:
    """Return what the witness would have a daemon do, and who runs the flow already.

    Raises ZooKeeperFault, WitnessGarbled.
    """
    paths = configuration.coordination.paths
    active = await zookeeper.get(paths.active)
    command = await zookeeper.get(paths.command(flow.source, flow.target))
    where = paths.orders(flow.source, flow.target)
    orders = await zookeeper.get(where)
    pause = None if orders is None else Orders.read(where, orders.data).pause_of()
    initial = ActiveSite(site=configuration.failover.initial_active, epoch=0)
    duty = decide_duty(
        Witnessed(
            session=SessionState.CONNECTED,
            is_member=True,
            active=initial if active is None else paths.read_active(active.data),
            command=None if command is None else FlowCommand.decode(command.data),
            paused=None if pause is None else f"paused by {pause.by}",
        ),
        source=flow.source,
        heeds_promotions=flow.heeds_promotions,
    )
    workers = await workers_of(zookeeper, configuration, flow)
    if isinstance(workers, str):
        told = "no daemon runs it at present"
    else:
        names = ", ".join(f"process {worker.pid} on {worker.host}" for worker in workers)
        told = f"{names} run it: another would share their work"
    return ["would run" if duty.role is Role.RUNNING else f"would rest: {duty.reason}", told]


async def _look_at(config: ClusterConfig) -> tuple[list[Spoken], list[str]]:
    """Return what a cluster's brokers speak, and lines of their versions and clocks."""
    try:
        with trio.fail_after(TIMEOUT_S):
            async with open_cluster(
                config.bootstrap, client_id=CLIENT_ID, name=config.name, security=config.security
            ) as cluster:
                view = await cluster.metadata(refresh=True)
                spoken = await ask_versions(cluster, view.brokers)
                clocks = await cluster_clocks(config.name, cluster, view, spoken)
    except NetworkFault as fault:
        raise CheckFailed(f"cluster {config.name}: {fault}") from fault
    except trio.TooSlowError as fault:
        raise CheckFailed(f"cluster {config.name}: no answer within {TIMEOUT_S:g} s") from fault
    told = [told_clock(one) for one in clocks]
    return spoken, [
        *told_versions(config.name, spoken),
        *(told or [f"clock of {config.name}: not shown: its brokers have stamped nothing yet"]),
    ]


def _without(flow: FlowConfig, spoken: dict[str, list[Spoken]]) -> list[str]:
    """Return what the flow goes without; raises CheckFailed where it cannot run so."""
    fatal: list[str] = []
    warnings: list[str] = []
    for name, needs in ((flow.source, OF_SOURCE), (flow.target, OF_TARGET)):
        found = lacking_versions(name, spoken[name], needs, flow)
        fatal += found[0]
        warnings += found[1]
    if fatal:
        raise CheckFailed(f"flow {flow.name}: cannot run: {'; '.join(fatal)}")
    return warnings


async def _check_flow(
    configuration: Configuration, flow: FlowConfig, role: Iterable[str]
) -> tuple[list[str], list[str]]:
    """Return what a run would do, and what of that would fail."""
    clusters = configuration.clusters
    try:
        with trio.fail_after(TIMEOUT_S):
            async with (
                open_links(flow, clusters[flow.source], clusters[flow.target]) as links,
                open_writers(configuration) as writers_of,
            ):
                lines, wrong = await _plan(flow, links)
                lines[2:2] = [*role, await _groups(flow, links.source_admin)]
                lines += await _distances(flow.source, links.source_data, SEND)
                lines += await _distances(flow.target, links.target_data, RECEIVE)
                lines += await way_back(flow, links.source_admin)
                lines += await told_start(flow, links, writers_of)
                lines += await internal_topics(flow, links, writers_of)
                mirrored = await _mirrored(flow, links.source_admin)
                lines += await closing(flow, links, mirrored)
                lines += await refusals(flow, links, mirrored)
                return lines, wrong
    except trio.TooSlowError as fault:
        raise CheckFailed(f"flow {flow.name}: no answer within {TIMEOUT_S:g} s") from fault


async def _mirrored(flow: FlowConfig, source: Cluster) -> set[str]:
    try:
        return set(wanted_topics(flow, await source.metadata()))
    except NetworkFault as fault:
        raise CheckFailed(f"cluster {flow.source}: {fault}") from fault


async def way_back(flow: FlowConfig, source: Cluster) -> list[str]:
    """Return a warning where records would be sent back, since only another file has the way back.

    A mirror reads the map of a flow back where its own file has that flow. Two mirrors of which
    each one's file has one direction cut no loops.
    """
    topic = map_topic_name(flow.target)
    try:
        is_unread = not (flow.has_way_back or flow.is_prefixed) and await topic_is_shown(
            source, topic
        )
    except NetworkFault as fault:
        raise CheckFailed(f"cluster {flow.source}: {fault}") from fault
    if not is_unread:
        return []
    back = f"{flow.target}->{flow.source}"
    warning = (
        f"warning: {flow.source} holds {topic}, so a mirror runs {back} or has run it, and this"
        " file has no such flow: what it brought would be sent back; have both flows in the file"
        " of each mirror"
    )
    return [warning]


def told_ousted(flow: FlowConfig, source: ClusterView) -> list[str]:
    """Return a warning for each topic that is there and whose name was given to another one."""
    taken = ((name, flow.names.ousted_by(name)) for name in sorted(source.topics))
    return [
        f"warning: {name} is not mirrored: its name on {flow.target} was given to {owner}"
        f" (`rename`); give {name} another one there"
        for name, owner in taken
        if owner is not None
    ]


async def _groups(flow: FlowConfig, source: Cluster) -> str:
    """Return which groups' positions would be kept in step."""
    try:
        listed = await list_groups(source)
    except NetworkFault as fault:
        return f"warning: {flow.source} does not list its groups: {fault}"
    names = sorted(
        group
        for group, one in listed.items()
        if flow.groups.matches(group) and one.group_type.casefold() not in WITHOUT_POSITIONS
    )
    more = [f"{len(names) - MOST_GROUPS} more"] if len(names) > MOST_GROUPS else []
    told = ", ".join([*names[:MOST_GROUPS], *more]) or "none matches"
    return f"would keep the positions of {len(names)} groups in step: {told}"


async def _distances(name: str, cluster: Cluster, setting: str) -> list[str]:
    """Return how far brokers are that are not near, and what holds them up."""
    try:
        view = await cluster.metadata(refresh=True)
        return told_distances(name, await measure_distances(cluster, view.brokers), setting)
    except NetworkFault as fault:
        raise CheckFailed(f"cluster {name}: {fault}") from fault


async def _plan(flow: FlowConfig, links: Links) -> tuple[list[str], list[str]]:
    try:
        source = await links.source_admin.metadata(refresh=True)
    except NetworkFault as fault:
        raise CheckFailed(f"flow {flow.name}: source {fault}") from fault
    try:
        target = await links.target_admin.metadata(refresh=True)
        wanted = wanted_topics(flow, source)
        on_target = {flow.names.on_target(name): name for name in wanted}
        target = await with_hidden(links.target_admin, target, on_target)
        there = {name for name in on_target if exists(target, name)}
        hidden = sorted(name for name in on_target if is_hidden(target, name))
        source_configs = await topic_configs(
            links.source_admin, set(wanted), with_defaults=flow.settings.takes_defaults
        )
        target_configs = await topic_configs(links.target_admin, there)
        rights = await _lacking_rights(flow, links, set(wanted), there, hidden)
    except NetworkFault as fault:
        raise CheckFailed(f"flow {flow.name}: target {fault}") from fault
    actions = plan_topics(
        {
            name: topic_shape(wanted[topic], source_configs.get(topic))
            for name, topic in on_target.items()
            if name not in hidden
        },
        {name: topic_shape(target.topics[name], target_configs.get(name)) for name in there},
        replication_factor=flow.replication_factor,
        live_brokers=len(target.brokers),
        settings=flow.settings,
    )
    count = sum(len(topic.partitions) for topic in wanted.values())
    brokers = f"{len(source.brokers)} brokers in {flow.source}, {len(target.brokers)} in"
    names = ", ".join(sorted(map(flow.names.words, wanted))) or "none matches"
    try:
        differing = await warn_by_topic(flow, links, set(wanted), actions)
    except NetworkFault as fault:
        raise CheckFailed(f"flow {flow.name}: settings of topics: {fault}") from fault
    refused = await _refused(flow, links.target_admin, actions)
    lines = [
        f"both sites answer: {brokers} {flow.target}",
        f"mirrors {len(wanted)} topics, {count} partitions: {names}",
        *told_ousted(flow, source),
        *(line for of_site in rights for line in of_site.values()),
        *(f"would {describe(action)}" for action in actions),
        *differing,
        *refused.values(),
    ]
    missing = [told for of_site in rights for right, told in of_site.items() if right in NEEDED]
    return lines, missing + [one for code, one in refused.items() if code not in ABOUT_SETTINGS]


async def _lacking_rights(
    flow: FlowConfig, links: Links, here: set[str], there: set[str], hidden: Sequence[str]
) -> list[dict[OperationBit, str]]:
    """Return a line for each right that is missing on the source, and on the target.

    Of what the target has `hidden` from us it tells no rights. Raises NetworkFault.
    """
    on_source = lacking(await topic_operations(links.source_admin, here), SOURCE_RIGHTS)
    on_target = lacking(await topic_operations(links.target_admin, there), TARGET_RIGHTS)
    if hidden:
        on_target.setdefault(OperationBit.DESCRIBE, []).extend(hidden)
    return [told_lacking(flow.source, on_source), told_lacking(flow.target, on_target)]


async def _refused(
    flow: FlowConfig, target: Cluster, actions: Sequence[TopicAction]
) -> dict[ErrorCode, str]:
    """Ask the target whether it would do the first of these; return its objections, by kind."""
    found: dict[ErrorCode, str] = {}
    for action in actions[:MOST_TRIED]:
        try:
            await apply(target, action, validate_only=True)
        except TopicRefused as refused:
            told = f"{flow.target} would refuse to {describe(action)}: {refused.reason}"
            found.setdefault(refused.code, told)
        except NetworkFault as fault:
            raise CheckFailed(f"flow {flow.name}: target {fault}") from fault
    return found


def describe(action: TopicAction) -> str:
    """Return an action as words to put after "would"."""
    match action:
        case CreateTopic():
            return (
                f"create {action.topic} with {action.partition_count} partitions, "
                f"replication factor {action.replication_factor}"
            )
        case GrowTopic():
            return f"grow {action.topic} to {action.partition_count} partitions"
        case SetConfigs():
            settings = ", ".join(f"{name}={value}" for name, value in action.configs.items())
            return f"set {settings} on {action.topic}"
