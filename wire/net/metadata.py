"""The view of a cluster: brokers, topics, leaders; and how long it is believed. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final
from uuid import UUID

from wire.errors import ErrorCode
from wire.headers import decode_response
from wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from wire.net.errors import RequestRefused
from wire.net.retries import code_of
from wire.net.transport import Address
from wire.primitives import Buffer
from wire.values import frozen

CORRELATION_BYTES: Final = 4
LONG_BYTES: Final = 4_096
"""About a hundred partitions."""
ANSWERS_KEPT: Final = 8
"""A program speaks with two clusters, as a rule, and asks each about all its topics and about some
of them. Brokers that were started at other times may say the same in another order."""
BELIEVED_FOR_S: Final = 60.0
"""A view older than this is asked for again; changes are noticed earlier, by error codes."""
_UNKNOWN: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@frozen
class BrokerView:
    """One broker as it advertises itself."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        return self.host, self.port


@frozen
class PartitionView:
    """Where one partition lives; `leader` is -1 while there is none, and `error_code` says why."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    error_code: int = 0


@frozen
class TopicView:
    """One topic; with an `error_code` other than 0, for instance unknown, without partitions."""

    name: str
    topic_id: UUID
    partitions: Mapping[int, PartitionView]
    is_internal: bool = False
    error_code: int = 0


@frozen
class ClusterView:
    """What is known of a cluster, or what one broker says of it.

    `controller_id` is -1 while there is none.
    """

    cluster_id: str | None
    controller_id: int
    brokers: Mapping[int, BrokerView]
    topics: Mapping[str, TopicView]

    def partition(self, topic: str, partition: int) -> PartitionView:
        """Return where a partition lives now.

        Raises RequestRefused with UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, or what else
        the brokers said of the topic.
        """
        found = self.topics.get(topic)
        view = None if found is None else found.partitions.get(partition)
        if found is not None and found.error_code != ErrorCode.NONE:
            code = code_of(found.error_code)
        elif view is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif view.leader < 0:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        else:
            return view
        raise RequestRefused(f"leader of {topic}-{partition}", code)


@dataclass(slots=True, kw_only=True)
class MetadataCache:
    """The last known view, each topic with its age; `now` is any clock in seconds."""

    cluster_id: str | None = None
    controller_id: int = -1
    brokers: dict[int, BrokerView] = field(default_factory=dict)
    _topics: dict[str, TopicView] = field(default_factory=dict)
    _fresh_until: dict[str, float] = field(default_factory=dict)
    _all_fresh_until: float = float("-inf")

    def learn(self, answer: ClusterView, now: float, *, of_all_topics: bool) -> None:
        """Take over an answer. Topics with an error or without a leader are not believed.

        A broker may be cut off from what the others hear: of a partition the newest leader epoch
        counts that any of them has told (KIP-320).
        """
        self.cluster_id = answer.cluster_id
        self.controller_id = answer.controller_id
        self.brokers = dict(answer.brokers)
        held = self._topics
        if of_all_topics:
            self._topics = {}
            self._fresh_until.clear()
            self._all_fresh_until = now + BELIEVED_FOR_S
        for told in answer.topics.values():
            view = _newest(held.get(told.name), told)
            self._topics[view.name] = view
            if _is_complete(view):
                self._fresh_until[view.name] = now + BELIEVED_FOR_S
            else:
                self._fresh_until.pop(view.name, None)

    def lost(self, answer: ClusterView, *, of_all_topics: bool) -> tuple[str, ...]:
        """Return the topics that were there so far and that the answer does not know."""
        told = answer.topics
        there = {name for name, topic in told.items() if topic.error_code != _UNKNOWN}
        asked = self._topics if of_all_topics else told
        known = (self._topics[name] for name in asked if name in self._topics)
        return tuple(
            topic.name
            for topic in known
            if topic.error_code == ErrorCode.NONE and topic.name not in there
        )

    def forget(self, topic: str) -> None:
        """Do not believe a topic's leaders any longer."""
        self._fresh_until.pop(topic, None)
        self._all_fresh_until = float("-inf")

    def is_fresh(self, topics: Iterable[str] | None, now: float) -> bool:
        """Say whether all the topics (None: every topic there is) are known well enough."""
        if topics is None:
            return now < self._all_fresh_until
        return all(now < self._fresh_until.get(topic, now) for topic in topics)

    def view(self, topics: Iterable[str] | None) -> ClusterView:
        """Return a snapshot with those topics, or all that are known."""
        names = self._topics if topics is None else topics
        return ClusterView(
            cluster_id=self.cluster_id,
            controller_id=self.controller_id,
            brokers=self.brokers,
            topics={name: self._topics[name] for name in names if name in self._topics},
        )


def read_metadata(frame: Buffer, version: int) -> ClusterView:
    """Return what an answer says, header included; raises MalformedMessage.

    Of thousands of partitions that takes tens of milliseconds, and brokers say the same again and
    again: so the same bytes of a long answer are decoded once.
    """
    if len(frame) < LONG_BYTES:
        return view_of(decode_response(MetadataResponse, frame, version))
    return _decoded(bytes(memoryview(frame)[CORRELATION_BYTES:]), version)


@lru_cache(maxsize=ANSWERS_KEPT)
def _decoded(rest: bytes, version: int) -> ClusterView:
    return view_of(decode_response(MetadataResponse, bytes(CORRELATION_BYTES) + rest, version))


def view_of(answer: MetadataResponse) -> ClusterView:
    """Return what a broker's answer says."""
    return ClusterView(
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id,
        brokers={
            broker.node_id: BrokerView(
                node_id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack
            )
            for broker in answer.brokers
        },
        topics={topic.name or "": _topic_view(topic) for topic in answer.topics},
    )


def with_second_opinion(answer: ClusterView, second: ClusterView) -> ClusterView:
    """Return the first answer with the topics that the second one has found after all."""
    found = {
        name: topic for name, topic in second.topics.items() if topic.error_code == ErrorCode.NONE
    }
    return replace(answer, topics={**answer.topics, **found})


def _newest(held: TopicView | None, told: TopicView) -> TopicView:
    """Return what was told, but for partitions of which something newer is known.

    Epochs begin anew with a topic of another id. A topic never loses a partition.
    """
    if held is told:
        return told  # it was decoded once
    is_same = held is not None and told.topic_id.int and held.topic_id == told.topic_id
    if held is None or not is_same or told.error_code != ErrorCode.NONE:
        return told
    newer = {
        index: partition
        for index, partition in held.partitions.items()
        if index not in told.partitions
        or -1 < told.partitions[index].leader_epoch < partition.leader_epoch
    }
    return replace(told, partitions={**told.partitions, **newer}) if newer else told


def _topic_view(topic: MetadataResponseTopic) -> TopicView:
    return TopicView(
        name=topic.name or "",
        topic_id=topic.topic_id,
        partitions={
            partition.partition_index: PartitionView(
                leader=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                replicas=partition.replica_nodes,
                isr=partition.isr_nodes,
                error_code=partition.error_code,
            )
            for partition in topic.partitions
        },
        is_internal=topic.is_internal,
        error_code=topic.error_code,
    )


def _is_complete(topic: TopicView) -> bool:
    return topic.error_code == ErrorCode.NONE and all(
        partition.leader >= 0 for partition in topic.partitions.values()
    )
