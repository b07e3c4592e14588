"""One group whose members speak either protocol, so that it changes its own again and again.

Classic members give up everything before they join, and their leader assigns in a classic group.
The model knows only what members were told, as real ones do.
"""

from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.partitions import gathered
from broker.groups.group import Group
from broker.groups.settings import ConsumerGroupSettings, GroupSettings
from broker.groups.states import GroupState
from broker.groups.subscription import decode_assignment, encode_assignment
from tests.broker.groups.driver import GROUP, Driver
from tests.properties import examples
from wire.errors import ErrorCode
from wire.messages.join_group import JoinGroupResponse

SESSION_MS = 10_000
SETTINGS = GroupSettings(
    initial_rebalance_delay_ms=1_000,
    consumer=ConsumerGroupSettings(session_timeout_ms=SESSION_MS),
)
PARTITIONS = frozenset(range(5))
INSTANCES = (None, None, "a", "b")

clients = st.integers(0, len(INSTANCES) - 1)


@dataclass(slots=True)
class Client:
    """A member of either protocol as it knows itself."""

    number: int
    instance_id: str | None
    is_classic: bool
    lives: int = 0
    owned: frozenset[int] = frozenset()
    # Of the new protocol.
    epoch: int = 0
    assigned: frozenset[int] = frozenset()
    # Of the classic one.
    given_id: str = ""
    joining: int | None = None
    syncing: int | None = None
    joined: JoinGroupResponse | None = None
    is_synced: bool = False
    past: list[tuple[str, int]] = field(default_factory=list)

    @property
    def member_id(self) -> str:
        return self.given_id if self.is_classic else f"client-{self.number}-{self.lives}"

    @property
    def generation(self) -> int:
        """Its epoch, by either name; -1 while it is in none."""
        if not self.is_classic:
            return self.epoch
        return -1 if self.joined is None else self.joined.generation_id

    def begin(self, *, is_classic: bool) -> None:
        """Begin as another process: only the instance id stays."""
        self.is_classic = is_classic
        self.lives += 1
        self.given_id = ""
        self.start_over()

    def start_over(self) -> None:
        """Own nothing, and join."""
        self.owned = self.assigned = frozenset()
        self.epoch, self.joining, self.syncing = 0, None, None
        self.joined, self.is_synced = None, False


class MixedGroupMachine(RuleBasedStateMachine):
    """Four members, two of them static."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(SETTINGS, now_ms=1)
        self.driver.put_topic("orders", len(PARTITIONS))
        self.clients = [
            Client(number, instance_id, is_classic=number % 2 == 0)
            for number, instance_id in enumerate(INSTANCES)
        ]
        self.acknowledged: dict[tuple[str, int], int] = {}

    # What members do

    @rule(index=clients)
    def one_goes_on(self, index: int) -> None:
        self._step(self.clients[index])

    @rule(rounds=st.integers(1, 4))
    def all_go_on(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.clients:
                self._step(client)
            self.driver.advance(300)

    @rule(index=clients, is_classic=st.booleans())
    def one_is_replaced_by_another_version(self, index: int, *, is_classic: bool) -> None:
        client = self.clients[index]
        if client.is_classic and client.member_id:
            self.driver.leave(client.member_id)
        elif not client.is_classic:
            self.driver.beat(client.member_id, -1, instance_id=client.instance_id)
        client.begin(is_classic=is_classic)

    @rule(index=clients, is_classic=st.booleans())
    def one_crashes(self, index: int, *, is_classic: bool) -> None:
        self.clients[index].begin(is_classic=is_classic)

    @rule(index=clients, offset=st.integers(0, 9), is_old=st.booleans())
    def one_commits(self, index: int, offset: int, *, is_old: bool) -> None:
        client = self.clients[index]
        name, generation = client.member_id, client.generation
        if is_old and client.past:
            name, generation = client.past[0]
        if not name or generation < 0:
            return
        outcome = self.driver.commit({("orders", 0): offset}, member_id=name, generation=generation)
        may = self._generations().get(name) == generation and not self._is_assigning()
        assert may == (outcome == {("orders", 0): ErrorCode.NONE})
        if may:
            self.acknowledged["orders", 0] = offset

    @rule()
    def all_behave_for_a_while(self) -> None:
        """Longer than any session and rebalance; then everybody has settled."""
        for _ in range(120):
            for client in self.clients:
                self._step(client)
            self.driver.advance(1_000)
        owned = Counter(partition for client in self.clients for partition in client.owned)
        assert owned == Counter(PARTITIONS)
        assert self._generations().keys() == {client.member_id for client in self.clients}

    # What the world does

    @rule(ms=st.sampled_from([1, 900, SESSION_MS, 70_000]))
    def time_passes(self, ms: int) -> None:
        self.driver.advance(ms)

    @rule()
    def the_coordinator_moves(self) -> None:
        former = self.driver
        former.resign()
        self.driver = former.restarted()
        self.driver.answers = former.answers
        self.driver._last_ticket = former._last_ticket

    # What must always hold

    @invariant()
    def there_is_one_group_of_one_protocol(self) -> None:
        assert (self._classic is None) or (self._modern is None)

    @invariant()
    def nobody_owns_what_another_member_owns(self) -> None:
        if self._modern is not None:
            recorded = [one for member in self._modern.members.values() for one in member.owned]
            assert len(recorded) == len(set(recorded))
        generations = self._generations()
        there = [
            client
            for client in self.clients
            if generations.get(client.member_id) == client.generation
        ]
        owned = [partition for client in there for partition in client.owned]
        assert len(owned) == len(set(owned))

    @invariant()
    def offsets_are_the_last_acknowledged(self) -> None:
        assert self.driver.committed() == self.acknowledged

    @invariant()
    def the_log_tells_which_protocol_the_group_has(self) -> None:
        shard = self.driver.restarted().shard
        assert (GROUP in shard.consumer.groups) == (self._modern is not None)
        if self._modern is not None:
            assert shard.consumer.groups[GROUP].members == self._modern.members

    # One member's next step

    def _step(self, client: Client) -> None:
        if not client.is_classic:
            self._beat(client)
        elif client.joining is not None:
            self._take_join_answer(client, client.joining)
        elif client.syncing is not None:
            self._take_sync_answer(client, client.syncing)
        elif client.joined is None:
            client.owned = frozenset()
            client.joining = self.driver.join(
                client.given_id,
                instance_id=client.instance_id,
                must_return=True,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=20_000,
            )
        elif not client.is_synced:
            self._sync(client, client.joined)
        else:
            error = self.driver.heartbeat(
                client.given_id, client.joined.generation_id, instance_id=client.instance_id
            )
            self._heed(client, error)

    def _heed(self, client: Client, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            client.joined, client.is_synced = None, False
        if error in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}:
            client.given_id = ""
            client.owned = frozenset()

    def _take_join_answer(self, client: Client, ticket: int) -> None:
        answer = self.driver.answers.get(ticket)
        if answer is None:
            return
        client.joining = None
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            client.given_id = answer.member_id
        elif error is ErrorCode.NONE:
            client.joined, client.given_id = answer, answer.member_id
            client.past.insert(0, (answer.member_id, answer.generation_id))
        else:
            self._heed(client, error)

    def _sync(self, client: Client, joined: JoinGroupResponse) -> None:
        names = [] if joined.skip_assignment else sorted(one.member_id for one in joined.members)
        given = {
            name: encode_assignment(0, {"orders": sorted(PARTITIONS)[place :: len(names)]})
            for place, name in enumerate(names)
        }
        client.syncing = self.driver.sync(joined, given, instance_id=client.instance_id)

    def _take_sync_answer(self, client: Client, ticket: int) -> None:
        answer = self.driver.answers.get(ticket)
        if answer is None:
            return
        client.syncing = None
        error = ErrorCode(answer.error_code)
        self._heed(client, error)
        if error is ErrorCode.NONE and client.joined is not None:
            client.is_synced = True
            client.owned = frozenset(index for _, index in decode_assignment(answer.assignment))

    def _beat(self, client: Client) -> None:
        topic_id = self.driver.topics.topics()["orders"].topic_id
        answer = self.driver.beat(
            client.member_id,
            client.epoch,
            instance_id=client.instance_id,
            rebalance_timeout_ms=20_000,
            topics=("orders",),
            owned=gathered([_Owned(topic_id, tuple(client.owned))]),
        )
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.UNRELEASED_INSTANCE_ID:
            return
        if error is not ErrorCode.NONE:
            client.start_over()
            return
        client.epoch = answer.member_epoch
        client.past.insert(0, (client.member_id, client.epoch))
        assert answer.assignment is not None, "it tells everything each time"
        client.assigned = frozenset(
            index for _, index in gathered(answer.assignment.topic_partitions)
        )
        # It gives up with this answer, and says so with the next heartbeat.
        has_given_up = not client.owned - client.assigned
        client.owned = client.assigned if has_given_up else client.owned & client.assigned

    # What the coordinator has

    @property
    def _classic(self) -> Group | None:
        return self.driver.shard.groups.get(GROUP)

    @property
    def _modern(self) -> ConsumerGroup | None:
        return self.driver.shard.consumer.groups.get(GROUP)

    def _generations(self) -> dict[str, int]:
        """Return the members, each with its epoch or generation."""
        if self._modern is not None:
            return {name: one.epoch for name, one in self._modern.members.items()}
        if self._classic is None:
            return {}
        return dict.fromkeys(self._classic.members, self._classic.generation)

    def _is_assigning(self) -> bool:
        group = self._classic
        return group is not None and group.state is GroupState.COMPLETING_REBALANCE


@dataclass(frozen=True, slots=True)
class _Owned:
    topic_id: UUID
    partitions: tuple[int, ...]


TestMixedGroupMachine = MixedGroupMachine.TestCase
TestMixedGroupMachine.settings = settings(max_examples=examples(10), deadline=None)
