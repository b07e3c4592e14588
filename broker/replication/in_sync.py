"""A leader's view of its followers: who is in sync, and what is therefore committed. Pure.

    follower 2 (in sync)      |---------|
    follower 3 (lags)         |----|
    leader's log              |---------------|
                                        ^ high watermark: every in-sync replica has what is below

Rules of Kafka's Partition and Replica: KIP-497 for changes of the ISR that are under way, KIP-966
for min.insync.replicas. Times are milliseconds of one monotonic clock, given as arguments.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final

from broker.replication.leadership import Leadership
from wire.values import frozen

UNKNOWN: Final = -1
NEVER_MS: Final = -(2**62)


class Follower:
    """How far one other replica is, as far as its fetches tell."""

    __slots__ = (
        "_last_fetch_leader_end",
        "_last_fetch_ms",
        "broker_epoch",
        "last_caught_up_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self) -> None:
        self.log_end_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.broker_epoch = UNKNOWN
        """The life of its broker in which it told this."""
        self.last_caught_up_ms = NEVER_MS
        self._last_fetch_ms = NEVER_MS
        self._last_fetch_leader_end = UNKNOWN

    def begin(self, leader_end: int, now_ms: int, *, is_in_sync: bool, is_known: bool) -> None:
        """Count anew in a new leader epoch; what is in sync has all its time again."""
        moment = now_ms if is_in_sync else NEVER_MS
        self.last_caught_up_ms = moment
        self._last_fetch_ms = moment if is_known else NEVER_MS
        self._last_fetch_leader_end = leader_end if is_known else UNKNOWN

    def fetched(
        self,
        offset: int,
        log_start_offset: int,
        leader_end: int,
        now_ms: int,
        broker_epoch: int = UNKNOWN,
    ) -> None:
        """Note a fetch: in this life of its broker the follower has everything below `offset`.

        A fetch that an earlier life has sent may come late, and tells nothing any more.

        It was caught up now if it asks for the leader's end, and when it fetched last if it asks
        for what was the leader's end then: so a busy leader does not make its followers look slow.
        """
        if UNKNOWN < broker_epoch < self.broker_epoch:
            return
        self.broker_epoch = broker_epoch
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self._last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self._last_fetch_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self._last_fetch_leader_end = max(leader_end, self._last_fetch_leader_end)
        self._last_fetch_ms = now_ms

    def is_caught_up(self, leader_end: int, now_ms: int, lag_time_max_ms: int) -> bool:
        """Return whether it has everything, or had it not longer ago than it may."""
        return (
            self.log_end_offset == leader_end or now_ms - self.last_caught_up_ms <= lag_time_max_ms
        )


@frozen
class PendingIsrChange:
    """An ISR that the leader has asked the controller for; its answer is not known yet."""

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    broker_epochs: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    """Of the followers, as they were heard of when this was decided. Whoever has begun a new life
    since may have lost with his disk what he is to join for (KIP-903)."""


@frozen
class IsrRules:
    """The rules by which a leader judges its followers for the ISR."""

    lag_time_max_ms: int
    """replica.lag.time.max.ms"""
    is_alive: Callable[[int], bool]
    """Whether a broker is registered, as far as this one knows."""


class InSync:
    """The replicas of one partition as its leader sees them, for as long as it leads.

    isr        as the controller last confirmed it; min.insync.replicas counts these
    maximal    with whom the controller may have added by now; the high watermark heeds all of them
    change     what was asked for and is not answered; there is at most one at a time

    A request without an answer may still be on its way, and be carried out after a later copy of it
    was refused. Then the leader asks for the ISR as it is: once the controller has written that as
    a newer version, everything asked for before is void. Replicas that may join count until then.
    """

    def __init__(self, broker_id: int, rules: IsrRules) -> None:
        self._broker_id = broker_id
        self._rules = rules
        self.followers: dict[int, Follower] = {}
        self.isr: frozenset[int] = frozenset()
        self.maximal: frozenset[int] = frozenset()
        self.change: PendingIsrChange | None = None
        self._is_in_doubt = False
        """Whether a copy of the change may still be on its way to the controller."""
        self._doubted: PendingIsrChange | None = None
        """The change that `change` is to make void."""
        self.epoch_start_offset = 0
        """Where this leader's epoch began; who has less cannot be known to have the same."""
        self._leader_epoch = UNKNOWN
        self._partition_epoch = UNKNOWN

    def take(self, leadership: Leadership, leader_end: int, now_ms: int) -> None:
        """Follow the controller's word; whatever was asked for before is settled by it.

        The controller counts leader epochs one by one. Right after our own nobody else has led, and
        what followers had fetched they have. Behind one that we never heard of another may have
        led, and cut them: then they are unknown until they fetch. (Kafka counts on them even so.)
        """
        is_next = leadership.leader_epoch <= self._leader_epoch + 1
        known = self.followers if is_next else {}
        self.followers = {
            broker: known.get(broker) or Follower()
            for broker in leadership.replicas
            if broker != self._broker_id
        }
        if leadership.leader_epoch > self._leader_epoch:
            for broker, follower in self.followers.items():
                follower.begin(
                    leader_end,
                    now_ms,
                    is_in_sync=broker in leadership.isr,
                    is_known=broker in known,
                )
            self.epoch_start_offset = leader_end
        self._commit(leadership)

    def _commit(self, leadership: Leadership) -> None:
        self._leader_epoch = leadership.leader_epoch
        self._partition_epoch = leadership.partition_epoch
        self.isr = self.maximal = frozenset(leadership.isr)
        self._settle()

    def _settle(self) -> None:
        self.change = self._doubted = None
        self._is_in_doubt = False

    def high_watermark(self, leader_end: int, now_ms: int, min_insync_replicas: int) -> int:
        """Return the end of what is committed; may lie below a value returned before.

        A follower that is about to join is waited for as well: otherwise the high watermark would
        run away from it for ever. UNKNOWN while too few are in sync, or one has not been heard of.
        """
        if len(self.isr) < self.effective_min(min_insync_replicas):
            return UNKNOWN
        end = leader_end
        for broker, follower in self.followers.items():
            if follower.log_end_offset < end and (
                broker in self.maximal or self._may_join_soon(broker, follower, leader_end, now_ms)
            ):
                end = follower.log_end_offset
        return end

    def _may_join_soon(self, broker: int, follower: Follower, leader_end: int, now_ms: int) -> bool:
        lag_time_max_ms = self._rules.lag_time_max_ms
        return follower.is_caught_up(leader_end, now_ms, lag_time_max_ms) and self._rules.is_alive(
            broker
        )

    def low_watermark(self, log_start_offset: int) -> int:
        """Return the lowest log start of this leader's own and those of the living followers.

        UNKNOWN while one of them has not told it (Kafka's lowWatermarkIfLeader).
        """
        starts = (
            follower.log_start_offset
            for broker, follower in self.followers.items()
            if self._rules.is_alive(broker)
        )
        return min(log_start_offset, min(starts, default=log_start_offset))

    def effective_min(self, min_insync_replicas: int) -> int:
        """Return min.insync.replicas, but never more than there are replicas (KIP-966)."""
        return min(min_insync_replicas, len(self.followers) + 1)

    def heard_of(self, broker: int, high_watermark: int) -> PendingIsrChange | None:
        """Return the change to ask for behind a fetch: whom to let in, or whom to leave out.

        A follower that is in sync and asks for what is committed has lost it, with its disk, while
        nobody saw that its broker was away.
        """
        if broker not in self.isr:
            return self.expand(broker, high_watermark)
        if self.change is None and self.followers[broker].log_end_offset < high_watermark:
            return self._ask(self.isr - {broker})
        return None

    def expand(self, broker: int, high_watermark: int) -> PendingIsrChange | None:
        """Return the change to ask for, if this follower is to join the ISR now.

        It needs all that is committed, and all up to this epoch's start: below that may lie records
        that an earlier leader has committed without this one knowing it yet.
        """
        if self.change is not None or broker in self.isr:
            return None
        end = self.followers[broker].log_end_offset
        if end < high_watermark or end < self.epoch_start_offset:
            return None
        if not self._rules.is_alive(broker):
            return None
        self.maximal = self.isr | {broker}
        return self._ask(self.maximal)

    def shrink(self, leader_end: int, now_ms: int) -> PendingIsrChange | None:
        """Return the change to ask for, if followers have fallen behind for too long."""
        if self.change is not None:
            return None
        lag_time_max_ms = self._rules.lag_time_max_ms
        behind = {
            broker
            for broker in self.isr - {self._broker_id}
            if broker not in self.followers
            or not self.followers[broker].is_caught_up(leader_end, now_ms, lag_time_max_ms)
        }
        return self._ask(self.isr - behind) if behind else None

    def _ask(self, isr: frozenset[int]) -> PendingIsrChange:
        self.change = PendingIsrChange(
            isr=tuple(sorted(isr)),
            leader_epoch=self._leader_epoch,
            partition_epoch=self._partition_epoch,
            broker_epochs={
                broker: follower.broker_epoch
                for broker, follower in self.followers.items()
                if broker in isr and follower.broker_epoch != UNKNOWN
            },
        )
        return self.change

    def confirmed(self, leadership: Leadership) -> bool:
        """Take over a newer state that the controller answered with; return whether it was one.

        Not one that is known already: it would hide a change that was asked for since, and the high
        watermark would leave behind whom the controller is just letting in.
        """
        if leadership.leader_epoch != self._leader_epoch:
            return False
        if leadership.partition_epoch <= self._partition_epoch:
            return False
        self._commit(leadership)
        return True

    def unanswered(self, change: PendingIsrChange) -> None:
        """Note that a request for this change may be carried out at any time, or never."""
        if self.change is change:
            self._is_in_doubt = True

    def refused(self, change: PendingIsrChange) -> PendingIsrChange | None:
        """Return to the last confirmed ISR: the controller did not make this change.

        Where an earlier copy of the request may still come to it, return what to ask for instead.
        """
        if self.change is not change:
            return None
        if not self._is_in_doubt:
            self._settle()
            self.maximal = self.isr
            return None
        self._doubted = self._doubted or change
        return self._ask(self.isr)

    def outdated(self, change: PendingIsrChange) -> PendingIsrChange | None:
        """Note that the controller knows a newer state than the change goes by.

        That may be the one that was to be made void: return it, so that it is asked for again. Any
        other comes as `take`, and until then the change stays under way.
        """
        if self.change is not change or self._doubted is None:
            return None
        self.change, self._doubted = self._doubted, None
        return self.change
