"""One membership of a group at one site: a confluent-kafka consumer whose commits are known.

Positions are "the next record not yet read". A record counts as processed once the application
asks for the next one, so that at any call of consume() or close() everything delivered before is
processed. An application that leaves by an error has not asked: the records in its hands are put
back.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, Final, TypeAlias

from confluent_kafka import (
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
)
from confluent_kafka import TopicPartition as PartitionOffset

from failover.client.carried import start_of
from failover.client.faults import STATE, TIMED_OUT, offset_of, partition_of
from failover.client.site_login import SiteLogin
from runtime.configuration.config import ClusterConfig
from wire.topic_partition import TopicPartition
from wire.values import frozen

_LOG = logging.getLogger(__name__)

Callback: TypeAlias = Callable[[list[PartitionOffset]], None]

COMMIT_TIMEOUT_S: Final = 5.0
COMMITTED_TIMEOUT_S: Final = 10.0
SERVE_S: Final = 0.02
RESET: Final = "auto.offset.reset"


@frozen
class Terms:
    """The behaviour of a membership, the same at every site.

    `settings` go to confluent-kafka as they are, without addresses. `commits_itself` is
    `enable.auto.commit`; librdkafka's own automatism is always off, since nobody could tell what
    it has committed.
    """

    settings: Mapping[str, Any]
    topics: Sequence[str]
    commits_itself: bool
    commit_interval_s: float
    on_assign: Callback
    on_revoke: Callback
    on_lost: Callback

    @property
    def is_cooperative(self) -> bool:
        """Tell whether partitions come and go one by one, as by the newer protocol (KIP-848)."""
        protocol = str(self.settings.get("group.protocol", ""))
        strategy = str(self.settings.get("partition.assignment.strategy", ""))
        return protocol.casefold() == "consumer" or strategy == "cooperative-sticky"

    @property
    def begins_at_end(self) -> bool:
        """Tell whether a group without a position begins behind all that is there."""
        topic_settings = self.settings.get("default.topic.config") or {}
        chosen = topic_settings.get(RESET, self.settings.get(RESET, "latest"))
        return str(chosen).casefold() in {"latest", "largest", "end"}


class GroupMembership:
    """A member of the group from construction until leave() or abandon()."""

    def __init__(
        self,
        terms: Terms,
        cluster: ClusterConfig,
        starts: Mapping[TopicPartition, int],
        is_left_behind: Callable[[], bool] = lambda: False,
    ) -> None:
        """Join; `starts` says where to begin at least in partitions this member had before.

        `is_left_behind` tells whether another site has become active, so that this one is not
        waited for any longer. Raises LoginUnusable, and KafkaException for settings that are of
        no use.
        """
        self._terms = terms
        self._is_left_behind = is_left_behind
        self._brought = dict(starts)  # what the last site had given
        self._starts = dict(starts)  # of it, what has not been assigned yet
        self._begun: dict[
            TopicPartition, int
        ] = {}  # at the end, for want of a position; none came since
        self._owned: set[TopicPartition] = set()
        self._positions: dict[TopicPartition, int] = {}
        self._delivered: dict[
            TopicPartition, int
        ] = {}  # also of partitions that went to others since
        self._in_hand: dict[TopicPartition, int] = {}  # where begins what was delivered last
        self._committed: dict[TopicPartition, int] = {}
        self._left_behind: dict[TopicPartition, int] = {}
        self._buffered: list[Message] = []
        self._outstanding = 0
        self._last_error: KafkaError | None = None
        self._in_callback = False
        self._is_leaving = False
        self._next_commit = monotonic() + terms.commit_interval_s
        self._login = SiteLogin(cluster, terms.settings)
        ours = {"enable.auto.commit": False, "on_commit": self._on_commit}
        self._consumer = self._login.open(Consumer, **ours)
        self._consumer.subscribe(
            list(terms.topics),
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )

    # --- reading -----------------------------------------------------------------------------

    def consume(self, count: int, timeout_s: float) -> list[Message]:
        """Return up to `count` messages, or errors as confluent-kafka's messages carry them."""
        if self._terms.commits_itself and monotonic() >= self._next_commit:
            self._commit_positions()
        self._login.look(self._consumer)
        messages = self._buffered[:count]
        del self._buffered[:count]
        if not messages:
            messages = self._consumer.consume(count, timeout_s)
        for message in messages:
            if message.error() is None:
                partition, behind = partition_of(message), offset_of(message) + 1
                # Before the position moves: an interrupt in between must not commit the record.
                self._in_hand.setdefault(partition, behind - 1)
                self._positions[partition] = self._delivered[partition] = behind
                self._begun.pop(partition, None)
        return messages

    def note_asked(self) -> None:
        """Take the delivered records as processed: the application asks for more."""
        self._in_hand.clear()

    def put_back(self) -> None:
        """Take the records delivered last as not processed: their handling failed.

        Records among them that the application has committed stay processed.
        """
        for partition, start in self._in_hand.items():
            if partition in self._positions:
                self._positions[partition] = min(self._positions[partition], start)
        self._in_hand.clear()

    def check_delivered(self, message: Message) -> None:
        """Raise KafkaException for a message of another site that would move the group too far."""
        partition, offset = partition_of(message), offset_of(message)
        if offset >= self._delivered.get(partition, 0):
            reason = f"{partition} at {offset} was not delivered here"
            raise KafkaException(KafkaError(STATE, reason))

    @property
    def owned(self) -> list[PartitionOffset]:
        """Return the partitions that are assigned to this member."""
        return [PartitionOffset(*partition) for partition in sorted(self._owned)]

    def carried(self) -> dict[TopicPartition, int]:
        """Return how far this member got: processed, or with manual commits, committed.

        Partitions that it lost meanwhile are among them. The member that has them now may be
        further, but no member has to read again what was processed here.
        """
        reached = self._positions if self._terms.commits_itself else self._committed
        return {**self._begun, **self._brought, **self._left_behind, **reached}

    # --- committing --------------------------------------------------------------------------

    def commit(
        self, offsets: Sequence[PartitionOffset] | None, *, asynchronous: bool
    ) -> list[PartitionOffset] | None:
        """Commit these positions, or all that were delivered.

        Raises KafkaException when the group refuses, or when a synchronous commit is not answered
        within COMMIT_TIMEOUT_S; librdkafka itself could wait for minutes on a dead site.
        """
        wanted = list(offsets) if offsets is not None else _as_offsets(self._positions)
        if not wanted:
            return None if asynchronous else []
        for one in wanted:
            partition = TopicPartition(one.topic, one.partition)
            if one.offset > self._in_hand.get(partition, one.offset):
                self._in_hand[partition] = one.offset
        if self._in_callback and not asynchronous:
            answer = self._consumer.commit(offsets=wanted, asynchronous=False)
            self._note_committed(answer or [])
            return answer
        self._start_commit(wanted)
        if asynchronous:
            return None
        if not self._wait_committed(COMMIT_TIMEOUT_S):
            raise KafkaException(KafkaError(TIMED_OUT, "the site does not acknowledge a commit"))
        if self._last_error is not None:
            raise KafkaException(self._last_error)
        return wanted

    def _commit_positions(self) -> None:
        self._next_commit = monotonic() + self._terms.commit_interval_s
        news = {
            partition: position
            for partition, position in self._positions.items()
            if partition in self._owned and self._committed.get(partition) != position
        }
        if news:
            self._start_commit(_as_offsets(news))

    def _start_commit(self, offsets: list[PartitionOffset]) -> None:
        self._consumer.commit(offsets=offsets, asynchronous=True)
        self._outstanding += 1

    def _wait_committed(self, timeout_s: float) -> bool:
        """Wait until every commit is answered; records that arrive meanwhile are kept."""
        deadline = monotonic() + timeout_s
        while self._outstanding and monotonic() < deadline and not self._is_left_behind():
            message = self._consumer.poll(SERVE_S)
            if message is not None:
                self._buffered.append(message)
        return not self._outstanding

    def _on_commit(self, error: KafkaError | None, offsets: list[PartitionOffset]) -> None:
        self._outstanding = max(0, self._outstanding - 1)
        self._last_error = error
        if error is None:
            self._note_committed(offsets)
        else:
            _LOG.warning("a commit was refused: %s", error)
        callback = self._terms.settings.get("on_commit")
        if callback is not None:
            callback(error, offsets)

    def _note_committed(self, offsets: Sequence[PartitionOffset]) -> None:
        for offset in offsets:
            if offset.error is None and offset.offset >= 0:
                self._committed[TopicPartition(offset.topic, offset.partition)] = offset.offset

    # --- leaving -----------------------------------------------------------------------------

    def leave(self) -> bool:
        """Commit what was processed and leave the group; False if the site did not answer.

        The application's on_revoke is called first, and may commit.
        """
        self._terms.on_revoke(self.owned)
        if self._terms.commits_itself:
            self._commit_positions()
        if not self._wait_committed(COMMIT_TIMEOUT_S):
            return False
        self._is_leaving = True
        self._consumer.close()
        return True

    def abandon(self) -> Consumer:
        """Let go of a site that may be dead; the application's on_lost is called.

        Returns the consumer, whose last reference the caller has to drop. Nothing else ends it:
        close() speaks to brokers that may be gone. Even dropping it can take seconds while a commit
        is unanswered.
        """
        self._terms.on_lost(self.owned)
        self._is_leaving = True
        consumer = self._consumer
        del self._consumer
        return consumer

    # --- rebalances, called by confluent-kafka from within its consume(), poll() and close() -----

    def _on_assign(self, consumer: Consumer, partitions: list[PartitionOffset]) -> None:
        asks_all = self._terms.begins_at_end
        given = {TopicPartition(each.topic, each.partition): each for each in partitions}
        committed = self._committed_there(
            consumer, [partition for partition in given if asks_all or partition in self._starts]
        )
        # Known to have none; of who does not say it is not known.
        begun = [p for p in given if p not in self._starts and committed.get(p, 0) < 0]
        self._begun |= self._ends_there(consumer, begun)
        assigned: list[PartitionOffset] = []
        for partition, each in given.items():
            brought = self._starts.pop(partition, self._begun.get(partition))
            start = start_of(committed.get(partition, -1), brought)
            if start is not None:
                self._positions[partition] = start
            assigned.append(each if start is None else PartitionOffset(*partition, start))
        self._owned.update(given)
        if self._terms.is_cooperative:
            consumer.incremental_assign(assigned)
        else:
            consumer.assign(assigned)
        self._call(self._terms.on_assign, assigned)

    def _committed_there(
        self, consumer: Consumer, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the group's own positions; none when the site does not say, ours count then."""
        if not partitions:
            return {}
        asked = [PartitionOffset(*partition) for partition in partitions]
        try:
            answers = consumer.committed(asked, timeout=COMMITTED_TIMEOUT_S)
        except KafkaException as error:
            _LOG.warning("the group's positions are not known, going on with our own: %s", error)
            return {}
        return {
            TopicPartition(answer.topic, answer.partition): answer.offset
            for answer in answers
            if answer.error is None
        }

    def _ends_there(
        self, consumer: Consumer, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return where these logs end, as far as the site says; else librdkafka finds out."""
        if not partitions:
            return {}
        asked = [PartitionOffset(*partition, OFFSET_END) for partition in partitions]
        try:
            answers = consumer.offsets_for_times(asked, timeout=COMMITTED_TIMEOUT_S)
        except KafkaException as error:
            _LOG.warning("where partitions end is not known yet: %s", error)
            return {}
        return {
            TopicPartition(answer.topic, answer.partition): answer.offset
            for answer in answers
            if answer.error is None and answer.offset >= 0
        }

    def _on_revoke(self, consumer: Consumer, partitions: list[PartitionOffset]) -> None:
        if not self._is_leaving:
            self._call(self._terms.on_revoke, partitions)
            if self._terms.commits_itself:
                self._commit_before_revoke(consumer, partitions)
        self._forget(partitions)

    def _commit_before_revoke(
        self, consumer: Consumer, partitions: Sequence[PartitionOffset]
    ) -> None:
        news = {
            partition: self._positions[partition]
            for partition in _without_offsets(partitions)
            if partition in self._positions
            and self._committed.get(partition) != self._positions[partition]
        }
        if not news:
            return
        try:
            self._note_committed(
                consumer.commit(offsets=_as_offsets(news), asynchronous=False) or []
            )
        except KafkaException as error:
            _LOG.warning("positions of revoked partitions were not committed: %s", error)

    def _on_lost(self, _: Consumer, partitions: list[PartitionOffset]) -> None:
        # `_forget` keeps what was reached: a promotion that comes later than the session timeout
        # would otherwise read everything since the last commit again.
        self._call(self._terms.on_lost, partitions)
        self._forget(partitions)

    def _forget(self, partitions: Sequence[PartitionOffset]) -> None:
        gone = _without_offsets(partitions)
        self._buffered = [
            m for m in self._buffered if m.error() is not None or partition_of(m) not in gone
        ]
        if self._is_leaving:
            return  # what was owned at the end is what is carried to the next site
        self._owned -= gone
        for partition in gone:
            self._begun.pop(partition, None)
            position = self._positions.pop(partition, None)
            committed = self._committed.pop(partition, None)
            reached = position if self._terms.commits_itself else committed
            if reached is not None:
                self._left_behind[partition] = reached

    def _call(self, callback: Callback, partitions: list[PartitionOffset]) -> None:
        self._in_callback = True
        try:
            callback(partitions)
        finally:
            self._in_callback = False


def _as_offsets(positions: Mapping[TopicPartition, int]) -> list[PartitionOffset]:
    return [
        PartitionOffset(*partition, position) for partition, position in sorted(positions.items())
    ]


def _without_offsets(partitions: Iterable[PartitionOffset]) -> set[TopicPartition]:
    return {TopicPartition(each.topic, each.partition) for each in partitions}
