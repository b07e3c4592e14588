"""Close topics of Apache Kafka for writes by rights, and see that every broker goes by them.

`runtime.rights.closing` says what the rights are. Each broker obeys its own copy of them, and
answers from that copy. Brokers with ZooKeeper learn of a right one after the other, brokers with
KRaft from their metadata log. Every broker is asked, because each may lead a partition a moment
later.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import TypeAlias

from failover.sites.probe import probe
from runtime.rights.closing import FenceNote, closing, closings, noted, noting
from runtime.rights.creation import words_of
from wire.errors import ErrorCode
from wire.net import Cluster, NetworkFault, RequestRefused
from wire.net.rights import DENY, Right, RightsOff, all_rights, give_rights, take_rights
from wire.topic_partition import TopicPartition

Closed: TypeAlias = TopicPartition | Right
"""Something that everybody is to be kept from: writing to a partition, or what an entry denies."""


class SiteWithoutBrokers(NetworkFault):
    """The cluster tells of no broker that could be asked for rights."""


async def read_closed(cluster: Cluster) -> dict[Right, set[FenceNote]] | None:
    """Return what a fence of ours denies, each entry with its notes. Raises NetworkFault.

    The result is None where nobody could have closed a topic, or we could not have.
    """
    try:
        return closings(await _denied(cluster))
    except (RightsOff, RequestRefused) as fault:
        if _has_no_fence(fault):
            return None
        raise


async def closed_anywhere(cluster: Cluster) -> frozenset[Right]:
    """Return what a fence of ours denies as any broker knows it that answers.

    A broker that has not heard yet of a fence that was lifted denies on. Raises NetworkFault, also
    where we may not look.
    """
    try:
        views = await _views(cluster)
    except RightsOff:
        return frozenset()
    return frozenset(closings(set().union(*views)))


async def close(cluster: Cluster, wanted: Collection[Right], clients: Sequence[str]) -> None:
    """Deny exactly this to everybody; what a fence of ours denied beside it is allowed again.

    What some broker lacks is given again, and what any broker has is taken: one broker alone may
    not have heard yet of what was given or taken a moment ago. Raises NetworkFault.
    """
    try:
        views = await _views(cluster)
    except (RightsOff, RequestRefused) as fault:
        if not wanted and _has_no_fence(fault):
            return
        raise
    given, taken = changes(set().union(*views), wanted, clients, known=set.intersection(*views))
    await give_rights(cluster, given)
    await take_rights(cluster, taken)


async def _views(cluster: Cluster) -> list[set[Right]]:
    """Return what is denied as each broker knows it that answers, one at least."""
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
    """Return what keeps anybody from anything."""
    return await all_rights(cluster, node=node, permission=DENY)


def changes(
    held: Set[Right],
    wanted: Collection[Right],
    clients: Sequence[str],
    *,
    known: Set[Right] | None = None,
) -> tuple[list[Right], list[Right]]:
    """Return what to give and then what to take, in this order, resource by resource.

    A note is given before the right that it notes, and taken after it. A controller that is killed
    in between leaves no right of unknown origin. The rights of a topic lie side by side, because an
    authorizer in ZooKeeper writes once for each topic in a request. `held` is what any broker has,
    `known` what all have; None where that is the same.
    """
    closed = closings(held)
    notes = {
        noting(right, FenceNote(client=client, was_closed=_was_closed(right, held, closed)))
        for right in wanted
        for client in clients
    }
    opened = {
        right
        for right, why in closed.items()
        if right not in wanted and not any(note.was_closed for note in why)
    }
    stale = {right for right in held if noted(right) is not None}
    given = (notes | set(wanted)) - (held if known is None else known)
    taken = opened | (stale - notes)
    return sorted(given, key=_note_first), sorted(taken, key=_note_last)


def _note_first(right: Right) -> tuple[int, str, int, bool, Right]:
    return right.kind, right.name, right.pattern, noted(right) is None, right


def _note_last(right: Right) -> tuple[int, str, int, bool, Right]:
    return right.kind, right.name, right.pattern, noted(right) is not None, right


def _was_closed(right: Right, held: Set[Right], closed: Mapping[Right, Set[FenceNote]]) -> bool:
    """Tell whether somebody else denied this before any fence of ours did."""
    if right in closed:
        return any(note.was_closed for note in closed[right])
    return right in held


async def still_open(cluster: Cluster, wanted: Iterable[Closed]) -> dict[Closed, str]:
    """Return what some broker would let everybody do, and why.

    Raises NetworkFault, also when a broker of the cluster does not answer.
    """
    needed = {one: one if isinstance(one, Right) else closing(one.topic) for one in wanted}
    found: dict[Closed, str] = {}
    for node in (await cluster.metadata((), refresh=True)).brokers:
        held = await _denied(cluster, node)
        for one, right in needed.items():
            if right not in held:
                what = "make such topics" if isinstance(one, Right) else "write to it"
                found[one] = f"broker {node} does not know yet that nobody may {what}"
    return found


def name_of(one: Closed) -> str:
    """Return what is to be closed, in words."""
    return ", ".join(words_of([one])) if isinstance(one, Right) else str(one)


async def locked_out(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Return the closed partitions that we could not write to either. Raises NetworkFault."""
    answers = await probe(cluster, partitions)
    shut = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return sorted(partition for partition, answer in answers.items() if answer is shut)
