"""A consumer group member that follows the active site, without a restart of the application.

    with SiteConsumer("dc.yaml", "billing", ["orders"]) as consumer:
        for message in consumer:
            handle(message)

A record counts as processed, and is committed, once the application asks for the next one or closes
the consumer. When the `with` is left by an error, also by Ctrl-C, what was being handled is not
committed: it is delivered again.

It is used like confluent-kafka's Consumer, from one thread, and has to be polled as regularly: all
of the following happens inside poll() and consume().

- *Planned promotion.* When the witness announces the next site, no more records are delivered.
  What earlier polls returned counts as processed and is committed (with `enable.auto.commit` false:
  `on_revoke` is called and only what the application has committed counts), the member leaves
  the group, waits for the switch and joins the same group on the new site, where the group's
  position has been translated.
- *Lost site.* When the active site changes without that, the old one is abandoned at once.
- *Rollback.* When the announcement is taken back, the member joins the old site again.

In the partitions it owned before, a member starts on the new site at the further of two positions:
the group's own one there, and its own one from the old site, translated through the offset map. So
it never reads again what it had processed, even if its last commit did not get across. When the
site was lost, the members first tell each other how far they got (see handover), so that holds for
partitions that move between members too.

Where the group has no position yet and is to begin at the end (`auto.offset.reset`), the end that a
member finds when it gets the partition counts as its position, and is committed: on the new site it
would find another end, behind what was written there before it had joined.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self, TypeAlias
from uuid import uuid4

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as PartitionOffset

from failover.client.active_site import ActiveSiteWatch, WitnessUnreachable
from failover.client.carried import Carried, starts_on
from failover.client.faults import STATE
from failover.client.group_membership import GroupMembership, Terms
from failover.client.position_handover import (
    Handover,
    HandoverGarbled,
    is_complete,
    merge,
)
from failover.client.set_of_client import configuration_of_set, require_one_name
from failover.client.site_login import NOT_YET_TRIED, SiteUnreadable, after_failure
from failover.client.site_reader import open_reader
from runtime.configuration.config import ClusterConfig, Configuration
from runtime.coordination.witness import ActiveSite
from wire.topic_partition import TopicPartition
from wire.values import frozen

_LOG = logging.getLogger(__name__)

RebalanceCallback: TypeAlias = Callable[["SiteConsumer", list[PartitionOffset]], None]

FOREVER: Final = float("inf")
SLICE_S: Final = 0.1
"""A change in the witness may go unnoticed for so long while records are waited for."""
HAND_OVER_TIMEOUT_S: Final = 3.0
"""The longest wait for members that were there and do not say how far they got."""
HAND_OVER_LOOK_S: Final = 0.02


@frozen
class RebalanceCallbacks:
    """The application's, each called with the SiteConsumer and the partitions.

    `on_revoke` may commit; at `on_lost` it is too late for that. A change of site is a revocation
    (or a loss) and then an assignment.
    """

    on_assign: RebalanceCallback | None = None
    on_revoke: RebalanceCallback | None = None
    on_lost: RebalanceCallback | None = None


class SiteConsumer:
    """A member of one group on whichever site is active."""

    def __init__(  # noqa: PLR0913 - each by its name, as confluent-kafka's settings are
        self,
        config: Path | str | Configuration,
        group_id: str,
        topics: Sequence[str],
        *,
        consumer_config: Mapping[str, Any] | None = None,
        on_revoke: RebalanceCallback | None = None,
        callbacks: RebalanceCallbacks | None = None,
        topic_set: str | None = None,
    ) -> None:
        """Learn which site is active; the group is joined by the first poll.

        `consumer_config` goes to confluent-kafka, without addresses and group. `topic_set` names
        the set of topics, in a file with sets; it is known by `topics` where all are of one. Raises
        runtime.configuration.config.ConfigurationError, for a topic of another name elsewhere as
        well, and active_site.WitnessUnreachable.
        """
        self._configuration = configuration_of_set(config, topic_set, topics)
        require_one_name(self._configuration, topics)
        chosen = callbacks or RebalanceCallbacks(on_revoke=on_revoke)
        self._terms = self._agree(group_id, topics, dict(consumer_config or {}), chosen)
        self._watch = ActiveSiteWatch(self._configuration)
        self._seen = self._watch.current()
        self._membership: GroupMembership | None = None
        self._carried = Carried(site=self._seen.site)
        self._retry_at = 0.0
        self._pause = NOT_YET_TRIED
        self._group_id = group_id
        self._member = uuid4().hex
        self._told_epoch = -1
        self._hand_over_until = 0.0
        self._is_closed = False

    def _agree(
        self,
        group_id: str,
        topics: Sequence[str],
        settings: dict[str, Any],
        callbacks: RebalanceCallbacks,
    ) -> Terms:
        commits_itself = str(settings.pop("enable.auto.commit", True)).lower() == "true"
        interval_ms = float(settings.pop("auto.commit.interval.ms", 5_000))
        settings["group.id"] = group_id
        return Terms(
            settings=settings,
            topics=tuple(topics),
            commits_itself=commits_itself,
            commit_interval_s=interval_ms / 1000,
            on_assign=partial(self._tell, callbacks.on_assign),
            on_revoke=partial(self._tell, callbacks.on_revoke),
            on_lost=partial(self._tell, callbacks.on_lost),
        )

    def _tell(self, callback: RebalanceCallback | None, partitions: list[PartitionOffset]) -> None:
        if callback is not None:
            callback(self, partitions)

    @property
    def site(self) -> str:
        """Return the site that this member reads from, or read from last."""
        return self._carried.site

    @property
    def is_between_sites(self) -> bool:
        """Tell whether the member is in no group at the moment, because the site is changing."""
        return self._membership is None

    # --- as confluent-kafka's Consumer -----------------------------------------------------------

    def poll(self, timeout: float = -1) -> Message | None:
        """Return the next message, None after `timeout` seconds (negative: wait for ever)."""
        messages = self.consume(1, timeout)
        return messages[0] if messages else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return up to `num_messages`, none after `timeout` seconds (negative: wait for ever).

        confluent-kafka waits for all `num_messages` or the whole timeout, also for the last few,
        and may return after a rebalance what it gathered before it. An application that commits
        exactly what it was given polls one by one.
        """
        if self._is_closed:
            raise RuntimeError("the consumer is closed")
        if self._membership is not None:
            self._membership.note_asked()
        deadline = monotonic() + timeout if timeout >= 0 else FOREVER
        while True:
            membership = self._follow()
            wait_s = max(0.0, min(SLICE_S, deadline - monotonic()))
            if membership is None:
                self._watch.wait_changed(self._seen, wait_s)
            elif messages := membership.consume(num_messages, wait_s):
                return messages
            if monotonic() >= deadline:
                return []

    def commit(
        self,
        message: Message | None = None,
        offsets: Sequence[PartitionOffset] | None = None,
        *,
        asynchronous: bool = True,
    ) -> list[PartitionOffset] | None:
        """Commit behind `message`, at `offsets`, or behind everything that was delivered.

        Raises KafkaException; also when the member is between two sites, where nothing can be
        committed, and for a message of the site before, whose offset means another record here:
        such records are delivered again.
        """
        if self._membership is None:
            raise KafkaException(KafkaError(STATE, "nothing can be committed between two sites"))
        if message is not None:
            self._membership.check_delivered(message)
            offsets = [_behind(message)]
        return self._membership.commit(offsets, asynchronous=asynchronous)

    def assignment(self) -> list[PartitionOffset]:
        """Return the partitions that are assigned to this member."""
        return [] if self._membership is None else self._membership.owned

    def close(self) -> None:
        """Commit what was processed, leave the group and the witness."""
        if self._is_closed:
            return
        self._is_closed = True
        self._leave()
        self._watch.close()

    def __enter__(self) -> Self:
        """Return the consumer itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close; after an error without committing the records that were being handled."""
        if error is not None and self._membership is not None:
            self._membership.put_back()
        self.close()

    def __iter__(self) -> Iterator[Message]:
        """Yield messages until the consumer is closed; raises KafkaException for errors."""
        while not self._is_closed:
            message = self.poll()
            assert message is not None, "poll without a timeout waits"
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            yield message

    # --- following the active site ---------------------------------------------------------------

    def _follow(self) -> GroupMembership | None:
        """Bring the membership in line with the witness; None while it can be nowhere."""
        active = self._watch.current()
        if active != self._seen:
            self._seen, self._retry_at, self._pause = active, 0.0, NOT_YET_TRIED
        if self._membership is None:
            if active.moving_to is None and monotonic() >= self._retry_at:
                self._join(active)
        elif active.site != self._carried.site:
            _LOG.info("site %s is active, leaving %s behind", active.site, self._carried.site)
            self._abandon()
        elif active.moving_to is not None:
            _LOG.info("%s is next, leaving %s", active.moving_to, active.site)
            self._leave()
        return self._membership

    def _join(self, active: ActiveSite) -> None:
        if not self._hand_over(active):
            return
        cluster = self._configuration.clusters[active.site]
        try:
            starts = self._starts_on(cluster)
            self._membership = GroupMembership(
                self._terms,
                cluster,
                starts,
                is_left_behind=lambda: self._watch.current().site != active.site,
            )
        except SiteUnreadable as error:
            _LOG.warning("cannot join on %s yet: %s", active.site, error)
            self._pause = after_failure(self._pause, error)
            self._retry_at = self._pause.not_before
            return
        self._pause = NOT_YET_TRIED
        self._carried = Carried(site=active.site, positions=starts)

    def _hand_over(self, active: ActiveSite) -> bool:
        """Tell the group what this member carries and learn what the others do; False: wait.

        Only members whose site was lost wait: a planned promotion has moved every commit.
        """
        group = self._configuration.coordination.paths.group(self._group_id)
        try:
            if self._told_epoch != active.epoch:
                told = Handover(epoch=active.epoch, carried=self._carried)
                self._watch.post(f"{group}/{self._member}", told.encode())
                self._told_epoch = active.epoch
            if self._carried.site == active.site:
                return True
            others = [Handover.decode(data) for data in self._watch.posted(group).values()]
        except (WitnessUnreachable, HandoverGarbled) as error:
            _LOG.warning("joining without the other members' positions: %s", error)
            return True
        if not is_complete(others, active.epoch) and monotonic() < self._hand_over_until:
            self._retry_at = monotonic() + HAND_OVER_LOOK_S
            return False
        self._carried = merge(self._carried, others, active.epoch)
        return True

    def _starts_on(self, cluster: ClusterConfig) -> dict[TopicPartition, int]:
        site, carried = cluster.name, self._carried
        if site == carried.site or not carried.positions:
            return starts_on(site, Carried(site=site, positions=carried.positions), {})
        with open_reader(cluster, self._terms.settings) as reader:
            maps = reader.offset_maps(carried.site, carried.positions.keys())
        return starts_on(site, carried, maps)

    def _leave(self) -> None:
        membership = self._membership
        if membership is None:
            return
        if membership.leave():
            self._let_go(membership)
        else:
            _LOG.warning("site %s does not answer, so the group was not left", self.site)
            self._abandon()

    def _abandon(self) -> None:
        membership = self._membership
        if membership is not None:
            self._watch.drop_later([membership.abandon()])
            self._hand_over_until = monotonic() + HAND_OVER_TIMEOUT_S
            self._let_go(membership)

    def _let_go(self, membership: GroupMembership) -> None:
        self._carried = Carried(site=self._carried.site, positions=membership.carried())
        self._membership = None


def _behind(message: Message) -> PartitionOffset:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None, "a delivered message has a topic"
    assert partition is not None, "a delivered message has a partition"
    assert offset is not None, "a delivered message has an offset"
    return PartitionOffset(topic, partition, offset + 1)
