"""Close topics of Apache Kafka for writes by rights, and see that every broker goes by them.

`runtime.write_fence` says what the rights are. Each broker obeys its own copy of them, and answers
from that copy. Brokers with ZooKeeper learn of a right one after the other, brokers with KRaft from
their metadata log. Every broker is asked, because each may lead a partition a moment later.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from failover.sites.probe import probe
from runtime.write_fence import Note, closing, fenced, noted, noting
from wire.errors import ErrorCode
from wire.net import Cluster, NetworkFault, RequestRefused
from wire.net.rights import (
    DENY,
    WRITE,
    Right,
    RightsOff,
    give_rights,
    take_rights,
    topic_rights,
)
from wire.topic_partition import TopicPartition


class SiteWithoutBrokers(NetworkFault):
    """The cluster tells of no broker that could be asked for rights."""


async def read_closed(cluster: Cluster) -> dict[str, set[Note]]:
    """Return the topics that a fence of ours closes, each with its notes. Raises NetworkFault.

    The result is empty where nobody could have closed a topic, or we could not have.
    """
    try:
        return fenced(await _denied(cluster))
    except (RightsOff, RequestRefused) as fault:
        if _has_no_fence(fault):
            return {}
        raise


async def close_topics(cluster: Cluster, topics: Collection[str], clients: Sequence[str]) -> None:
    """Close exactly these topics; what a fence of ours closed beside them is opened.

    What some broker lacks is given again, and what any broker has is taken: one broker alone may
    not have heard yet of what was given or taken a moment ago. Raises NetworkFault.
    """
    try:
        views = await _views(cluster)
    except (RightsOff, RequestRefused) as fault:
        if not topics and _has_no_fence(fault):
            return
        raise
    given, taken = changes(set().union(*views), topics, clients, known=set.intersection(*views))
    await give_rights(cluster, given)
    await take_rights(cluster, taken)


async def _views(cluster: Cluster) -> list[set[Right]]:
    """Return what keeps anybody from writing as each broker knows it that answers, one at least."""
    views: list[set[Right]] = []
    silent: NetworkFault | None = None
    for node in (await cluster.metadata((), refresh=True)).brokers:
        try:
            views.append(await _denied(cluster, node))
        except (RightsOff, RequestRefused):
            raise
        except NetworkFault as fault:
            silent = fault  # `still_open` asks it before the fence is said to hold
    if not views:
        raise silent or SiteWithoutBrokers("no broker is known")
    return views


def _has_no_fence(fault: RightsOff | RequestRefused) -> bool:
    """Tell whether nobody can have closed a topic here, or not we, who may not even look."""
    return isinstance(fault, RightsOff) or fault.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def _denied(cluster: Cluster, node: int | None = None) -> set[Right]:
    """Return what keeps anybody from writing."""
    return await topic_rights(cluster, node=node, operation=WRITE, permission=DENY)


def changes(
    held: Set[Right],
    topics: Collection[str],
    clients: Sequence[str],
    *,
    known: Set[Right] | None = None,
) -> tuple[list[Right], list[Right]]:
    """Return what to give and then what to take, in this order, topic by topic.

    A note is given before the right that it notes, and taken after it. A controller that is killed
    in between leaves no right of unknown origin. The rights of a topic lie side by side, because an
    authorizer in ZooKeeper writes once for each topic in a request. `held` is what any broker has,
    `known` what all have; None where that is the same.
    """
    closed = fenced(held)
    notes = {
        noting(topic, Note(client=client, was_closed=_was_closed(topic, held, closed)))
        for topic in topics
        for client in clients
    }
    opened = {
        closing(topic)
        for topic, why in closed.items()
        if topic not in topics and not any(note.was_closed for note in why)
    }
    stale = {right for right in held if noted(right) is not None}
    given = (notes | {closing(topic) for topic in topics}) - (held if known is None else known)
    taken = opened | (stale - notes)
    return sorted(given, key=_note_first), sorted(taken, key=_note_last)


def _note_first(right: Right) -> tuple[str, bool, Right]:
    return right.name, noted(right) is None, right


def _note_last(right: Right) -> tuple[str, bool, Right]:
    return right.name, noted(right) is not None, right


def _was_closed(topic: str, held: Set[Right], closed: Mapping[str, Set[Note]]) -> bool:
    """Tell whether somebody else closed this topic before any fence of ours did."""
    if topic in closed:
        return any(note.was_closed for note in closed[topic])
    return closing(topic) in held


async def still_open(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, str]:
    """Return the partitions that some broker would let everybody write to, and why.

    Raises NetworkFault, also when a broker of the cluster does not answer.
    """
    wanted = list(partitions)
    found: dict[TopicPartition, str] = {}
    for node in (await cluster.metadata((), refresh=True)).brokers:
        held = await _denied(cluster, node)
        unknown = {topic for topic, _ in wanted if closing(topic) not in held}
        why = f"broker {node} does not know yet that nobody may write to it"
        found |= {partition: why for partition in wanted if partition.topic in unknown}
    return found


async def locked_out(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Return the closed partitions that we could not write to either. Raises NetworkFault."""
    answers = await probe(cluster, partitions)
    shut = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return sorted(partition for partition, answer in answers.items() if answer is shut)


async def why_not(cluster: Cluster, topics: Iterable[str]) -> str | None:
    """Return why these topics cannot be closed by rights; None when they can. Raises NetworkFault.

    An entry that denies one thing would take everything else away as well from a topic that all
    may use because no entry concerns it (allow.everyone.if.no.acl.found).
    """
    try:
        held = await topic_rights(cluster)
    except RightsOff as off:
        return f"it has no write fence, and {off}"
    except RequestRefused as refused:
        return f"it has no write fence, and {refused}"
    bare = sorted(topic for topic in topics if not _is_guarded(topic, held))
    if not bare:
        return None
    more = f" (and {len(bare) - 1} more)" if len(bare) > 1 else ""
    return (
        f"no ACL concerns {bare[0]}{more}, and the first one, a DENY of WRITE, would shut readers"
        " out as well where all may do what no ACL speaks of; give READ to those who read it"
    )


def _is_guarded(topic: str, held: Iterable[Right]) -> bool:
    return any(right.concerns(topic) for right in held)
