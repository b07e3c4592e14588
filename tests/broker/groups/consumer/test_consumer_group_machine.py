"""A group of the new protocol under members that come, go, fall silent, lose answers and lag.

The model knows only what members were told, as real ones do: which epoch they are in, and what
they own. A member gives up what is no longer assigned to it when it gets to it, and says so.
"""

from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.groups.consumer.group import ConsumerGroup, ConsumerGroupState
from broker.groups.consumer.partitions import NONE, Partitions, TopicIdPartition, gathered
from broker.groups.settings import ConsumerGroupSettings, GroupSettings
from tests.broker.groups.driver import GROUP, Driver
from tests.properties import examples
from wire.errors import ErrorCode
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

SESSION_MS = 10_000
SETTINGS = GroupSettings(consumer=ConsumerGroupSettings(session_timeout_ms=SESSION_MS))
INSTANCES = (None, None, None, "a", "b")
TOPICS = ("orders", "payments", "refunds")
REPLAYED = ("epoch", "target_epoch", "members", "targets", "topics", "patterns")

clients = st.integers(0, len(INSTANCES) - 1)
subscriptions = st.sampled_from(
    [("orders",), ("orders", "payments"), ("payments", "refunds"), "or.*|pay.*", ".*s"]
)


@dataclass(slots=True)
class Client:
    """A member as it knows itself."""

    number: int
    instance_id: str | None
    lives: int = 0
    epoch: int = 0
    owned: Partitions = NONE
    assigned: Partitions = NONE
    """What it was told; what it owns beyond that it still has to give up."""
    is_full: bool = True
    """Whether it tells everything with the next heartbeat: it joins, or an answer was lost."""
    subscription: tuple[str, ...] | str = ("orders",)
    has_told: bool = False
    past: list[tuple[str, int]] = field(default_factory=list)

    @property
    def member_id(self) -> str:
        return f"client-{self.number}-{self.lives}"

    def forget(self) -> None:
        """Begin as another process: only the instance id stays."""
        self.lives += 1
        self.start_over()

    def start_over(self) -> None:
        """Own nothing, and join."""
        self.epoch, self.owned, self.assigned = 0, NONE, NONE
        self.is_full, self.has_told = True, False


class ConsumerGroupMachine(RuleBasedStateMachine):
    """Five members, two of them static, in one group."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(SETTINGS, now_ms=1)
        self.driver.put_topic("orders", 4, topic_id=1)
        self.clients = [Client(number, one) for number, one in enumerate(INSTANCES)]
        self.last_topic_id = 1
        self.epoch = 0
        self.member_epochs: dict[str, int] = {}
        self.acknowledged: dict[tuple[str, int], int] = {}

    # What members do

    @rule(index=clients, is_lost=st.booleans())
    def one_beats(self, index: int, *, is_lost: bool) -> None:
        self._beat(self.clients[index], is_lost=is_lost)

    @rule(index=clients)
    def one_gives_up_what_is_no_longer_its_own(self, index: int) -> None:
        client = self.clients[index]
        client.owned &= client.assigned

    @rule(index=clients, subscription=subscriptions)
    def one_subscribes_anew(self, index: int, subscription: tuple[str, ...] | str) -> None:
        self.clients[index].subscription = subscription
        self.clients[index].has_told = False

    @rule(index=clients)
    def one_crashes(self, index: int) -> None:
        self.clients[index].forget()

    @rule(index=clients, for_a_while=st.booleans(), comes_back=st.booleans())
    def one_leaves(self, index: int, *, for_a_while: bool, comes_back: bool) -> None:
        """One that comes back under its old id has unsubscribed and subscribes again."""
        client = self.clients[index]
        is_static = client.instance_id is not None
        epoch = -2 if for_a_while and is_static else -1
        self.driver.beat(client.member_id, epoch, instance_id=client.instance_id)
        if comes_back:
            client.start_over()
        else:
            client.forget()

    @rule(index=clients, offset=st.integers(0, 9), is_old=st.booleans())
    def one_commits(self, index: int, offset: int, *, is_old: bool) -> None:
        client = self.clients[index]
        name, epoch = client.member_id, client.epoch
        if is_old and client.past:
            name, epoch = client.past[0]
        group = self._group
        member = None if group is None else group.members.get(name)
        may = member is not None and member.epoch == epoch
        outcome = self.driver.commit({("orders", 0): offset}, member_id=name, generation=epoch)
        assert may == (outcome == {("orders", 0): ErrorCode.NONE})
        if may:
            self.acknowledged["orders", 0] = offset

    @rule()
    def all_behave_for_a_while(self) -> None:
        """Longer than any session and revocation; then everybody has settled."""
        for _ in range(80):
            for client in self.clients:
                self._beat(client, is_lost=False)
                client.owned &= client.assigned
            self.driver.advance(1_000)
        group = self._group
        assert group is not None
        assert group.state is ConsumerGroupState.STABLE
        assert group.members.keys() == {client.member_id for client in self.clients}
        owned = Counter(partition for client in self.clients for partition in client.owned)
        assert owned == Counter(self._wanted())
        for client in self.clients:
            assert client.owned == client.assigned == group.target_of(client.member_id)

    # What the world does

    @rule(ms=st.sampled_from([1, 900, 5_000, SESSION_MS - 1, SESSION_MS, 70_000]))
    def time_passes(self, ms: int) -> None:
        self.driver.advance(ms)

    @rule(name=st.sampled_from(TOPICS), count=st.integers(1, 6))
    def a_topic_grows(self, name: str, count: int) -> None:
        view = self.driver.topics.topic(name)
        if view is None:
            self.last_topic_id += 1
        topic_id = self.last_topic_id if view is None else view.topic_id.int
        self.driver.put_topic(name, count, topic_id=topic_id)

    @rule(name=st.sampled_from(TOPICS))
    def a_topic_is_deleted(self, name: str) -> None:
        self.driver.topics.remove_topic(name)

    @rule()
    def the_coordinator_moves(self) -> None:
        self.driver = self.driver.restarted()

    @rule()
    def a_tool_deletes_the_group(self) -> None:
        has_members = self._group is not None and bool(self._group.members)
        assert (self.driver.delete_group() is ErrorCode.NON_EMPTY_GROUP) == has_members
        if not has_members:
            assert self._group is None
            self.acknowledged.clear()
            self.epoch = 0

    # What must always hold

    @invariant()
    def nobody_owns_what_another_member_owns(self) -> None:
        group = self._group
        if group is None:
            return
        recorded = [partition for one in group.members.values() for partition in one.owned]
        assert len(recorded) == len(set(recorded))
        members = [client for client in self.clients if client.member_id in group.members]
        owned = [partition for client in members for partition in client.owned]
        assert len(owned) == len(set(owned))
        for client in members:
            member = group.members[client.member_id]
            assert client.epoch != member.epoch or client.owned <= member.owned

    @invariant()
    def no_epoch_goes_back(self) -> None:
        group = self._group
        epochs = {name: one.epoch for name, one in group.members.items()} if group else {}
        assert group is None or group.epoch >= self.epoch
        self.epoch = group.epoch if group else 0
        for name, epoch in epochs.items():
            assert epoch == -2 or epoch >= self.member_epochs.get(name, 0)
        self.member_epochs = epochs

    @invariant()
    def offsets_are_the_last_acknowledged(self) -> None:
        assert self.driver.committed() == self.acknowledged

    @invariant()
    def the_log_tells_the_state(self) -> None:
        live, loaded = self._group, self.driver.restarted().shard.consumer.groups.get(GROUP)
        assert (live is None) == (loaded is None)
        for name in REPLAYED:
            assert getattr(live, name, None) == getattr(loaded, name, None)

    @invariant()
    def every_member_has_a_session(self) -> None:
        if self._group is not None and self._group.members:
            due_ms = self.driver.shard.next_deadline_ms
            assert due_ms is not None
            assert due_ms <= self.driver.now_ms + SESSION_MS

    # One member's next heartbeat

    def _beat(self, client: Client, *, is_lost: bool) -> None:
        group = self._group
        former = None if group is None else group.members.get(client.member_id)
        comes_back = client.epoch == 0 and former is not None and former.is_away
        tells = client.is_full or not client.has_told
        by_name = isinstance(client.subscription, tuple)
        answer = self.driver.beat(
            client.member_id,
            client.epoch,
            instance_id=client.instance_id,
            rebalance_timeout_ms=20_000 if client.is_full else -1,
            topics=(client.subscription if by_name else ()) if tells else None,
            pattern=("" if by_name else str(client.subscription)) if tells else None,
            owned=client.owned,
        )
        error = ErrorCode(answer.error_code)
        assert not comes_back or error is ErrorCode.NONE, "its place waits for it"
        if is_lost:
            client.is_full, client.has_told = True, False
        elif error is ErrorCode.NONE:
            self._take(client, answer)
        elif error is ErrorCode.UNRELEASED_INSTANCE_ID:
            assert client.instance_id is not None  # its former self has a session to go
        else:
            assert error in {
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.FENCED_INSTANCE_ID,
                ErrorCode.GROUP_ID_NOT_FOUND,
            }
            client.start_over()

    def _take(self, client: Client, answer: ConsumerGroupHeartbeatResponse) -> None:
        assert answer.member_id == client.member_id
        client.epoch, client.is_full, client.has_told = answer.member_epoch, False, True
        client.past.insert(0, (client.member_id, client.epoch))
        if answer.assignment is not None:
            client.assigned = gathered(answer.assignment.topic_partitions)
        if not client.owned - client.assigned:  # else it gives up first
            client.owned = client.assigned

    @property
    def _group(self) -> ConsumerGroup | None:
        return self.driver.shard.consumer.groups.get(GROUP)

    def _wanted(self) -> set[TopicIdPartition]:
        group, views = self._group, self.driver.topics.topics()
        assert group is not None
        names = {name for one in group.members.values() for name in group.topics_of(one)}
        return {
            TopicIdPartition(UUID(int=views[name].topic_id.int), index)
            for name in names & views.keys()
            for index in views[name].partitions
        }


TestConsumerGroupMachine = ConsumerGroupMachine.TestCase
TestConsumerGroupMachine.settings = settings(max_examples=examples(12), deadline=None)
