"""What `mirror check` says of the internal topics: who may write there, and who else has."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from mirror.clusters.links import Links
from mirror.clusters.tail_reader import TailReader, topic_exists
from mirror.map.believed import believed
from mirror.map.known_writers import WritersOf
from mirror.map.unbelieved_watch import told_unbelieved
from offset_translation.map_records import map_topic_name
from runtime.configuration.config import FlowConfig
from runtime.coordination.map_writers import UnbelievedRecords, Writers
from runtime.pair import evidence
from wire.net import Cluster, NetworkFault
from wire.net.rights import (
    ALL_OPERATIONS,
    ALLOW,
    DENY,
    WRITE,
    Right,
    RightsOff,
    topic_rights,
)

EVERYBODY: Final = "User:*"
ANYWHERE: Final = "*"


async def internal_topics(flow: FlowConfig, links: Links, writers_of: WritersOf) -> list[str]:
    """Return lines about the internal topics of a flow, which anybody may mislead who writes them.

    A cluster that does not answer is a line, too.
    """
    map_topic = map_topic_name(flow.source)
    on_target = (map_topic, flow.names.checkpoints_topic, evidence.TOPIC)
    lines = [
        *await _who_may_write(flow.target, links.target_admin, on_target),
        *await _who_may_write(flow.source, links.source_admin, (evidence.TOPIC,)),
    ]
    for topic in (map_topic, flow.names.checkpoints_topic):
        writers = writers_of(flow.source, flow.target, of_checkpoints=topic != map_topic)
        try:
            concerned = flow.mirrors if topic == map_topic else None
            unbelieved = await _unbelieved(links.target_admin, topic, writers, concerned)
        except NetworkFault as fault:
            lines.append(f"warning: {topic} on {flow.target} was not read: {fault}")
        else:
            lines += [
                f"warning: {line}" for line in told_unbelieved({topic: unbelieved}, flow.topic_set)
            ]
    return lines


async def _unbelieved(
    target: Cluster, topic: str, writers: Writers, concerned: Callable[[str], bool] | None
) -> UnbelievedRecords:
    """Return the records of an internal topic that are not believed; raises NetworkFault."""
    unbelieved = UnbelievedRecords() if concerned is None else UnbelievedRecords(concerned)
    if await topic_exists(target, topic):
        reader = TailReader(target, topic, damaged=lambda _: None)  # whoever reads it names that
        async for _ in believed(reader, writers, unbelieved):
            pass
    return unbelieved


async def _who_may_write(site: str, cluster: Cluster, topics: Sequence[str]) -> list[str]:
    try:
        rights = await topic_rights(cluster)
    except RightsOff as off:
        return [f"warning: everybody may write {', '.join(topics)} on {site}: it has {off}"]
    except NetworkFault as fault:
        return [f"warning: who may write {', '.join(topics)} on {site} is not told: {fault}"]
    return told_writers(site, topics, rights)


def told_writers(site: str, topics: Iterable[str], rights: Iterable[Right]) -> list[str]:
    """Return a line about each topic; a warning where it is not one user alone who may write it.

    Brokers do not say who their super users are, nor whether topics without rights are open to all.
    """
    held = list(rights)
    lines: list[str] = []
    for topic in topics:
        names = ", ".join(sorted(_allowed(topic, held))) or "nobody by rights"
        warning = "warning: " if "," in names or EVERYBODY in names else ""
        lines.append(f"{warning}{topic} on {site} may be written by {names}, and by super users")
    return lines


def _allowed(topic: str, rights: Iterable[Right]) -> set[str]:
    """Return who has a right to write to a topic that no DENY for every host takes away."""
    of_topic = [
        one for one in rights if one.concerns(topic) and one.operation in {WRITE, ALL_OPERATIONS}
    ]
    denied = {one.principal for one in of_topic if one.permission == DENY and one.host == ANYWHERE}
    if EVERYBODY in denied:
        return set()
    return {one.principal for one in of_topic if one.permission == ALLOW} - denied
