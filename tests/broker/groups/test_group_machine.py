"""A group and its log under clients that come, go, fall silent and lag behind, and restarts.

The model knows only what clients were told: who is in which generation, what was acknowledged.
"""

from dataclasses import dataclass, field

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.groups.group import Group
from broker.groups.settings import GroupSettings
from broker.groups.states import GroupState
from tests.broker.groups.driver import GROUP, Driver
from wire.errors import ErrorCode
from wire.messages.join_group import JoinGroupResponse
from wire.messages.sync_group import SyncGroupResponse

SETTINGS = GroupSettings(initial_rebalance_delay_ms=1_000)
REPLAYED = ("group_id", "generation", "protocol_type", "protocol_name", "leader_id", "topics")
START_OVER = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
INSTANCES = (None, None, "a", "b")

clients = st.integers(0, len(INSTANCES) - 1)
partitions = st.sampled_from([("orders", 0), ("orders", 1), ("payments", 0)])


@dataclass(slots=True)
class Client:
    """A consumer as its coordinator sees it: one request at a time, and what it was told last."""

    instance_id: str | None
    member_id: str = ""
    joining: int | None = None
    syncing: int | None = None
    lives: int = 0
    """Of the group, when the SyncGroup was sent: a deleted group counts generations anew."""
    joined: JoinGroupResponse | None = None
    is_assigned: bool = False
    past: list[JoinGroupResponse] = field(default_factory=list)

    def forget(self) -> None:
        """Crash: whatever was known is gone, except the instance id."""
        self.member_id, self.joining, self.syncing = "", None, None
        self.joined, self.is_assigned = None, False

    def heed(self, error: ErrorCode) -> None:
        """Do what an error asks for."""
        self.joined, self.is_assigned = None, False
        if error in START_OVER:
            self.member_id = ""


class GroupMachine(RuleBasedStateMachine):
    """Four clients, two of them static, in one group."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(SETTINGS, now_ms=1)
        self.clients = [Client(instance_id) for instance_id in INSTANCES]
        self.lives = 0
        self.assigned: dict[tuple[int, int, str], bytes] = {}
        self.acknowledged: dict[tuple[str, int], int] = {}

    # What clients do

    @rule(index=clients)
    def one_goes_on(self, index: int) -> None:
        self._step(self.clients[index])

    @rule(rounds=st.integers(1, 4))
    def all_go_on(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.clients:
                self._step(client)

    @rule(rounds=st.sampled_from([1, 60]))
    def all_behave_for_a_while(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.clients:
                self._step(client)
            self.driver.advance(1_000)
        if rounds == 60:  # longer than any session or rebalance: then everybody has settled
            assert self._group is not None
            assert self._group.state is GroupState.STABLE
            settled = {client.member_id for client in self.clients if client.is_assigned}
            assert set(self._group.members) == settled
            assert len(settled) == len(self.clients)

    @rule(index=clients)
    def one_crashes(self, index: int) -> None:
        self.clients[index].forget()

    @rule(index=clients)
    def one_leaves(self, index: int) -> None:
        client = self.clients[index]
        if client.joined is not None:
            self.driver.leave(client.member_id)
            assert self._group is None or client.member_id not in self._group.members
        client.forget()

    @rule(index=clients, partition=partitions, offset=st.integers(0, 9), lags=st.booleans())
    def one_commits(
        self, index: int, partition: tuple[str, int], offset: int, *, lags: bool
    ) -> None:
        client = self.clients[index]
        member = client.past[0] if lags and client.past else client.joined
        if member is None:
            return
        group = self._group
        may = (
            group is not None
            and member.member_id in group.members
            and member.generation_id == group.generation
            and group.state is not GroupState.COMPLETING_REBALANCE
        )
        outcome = self.driver.commit(
            {partition: offset}, member_id=member.member_id, generation=member.generation_id
        )
        assert may == (outcome == {partition: ErrorCode.NONE})
        if may:
            self.acknowledged[partition] = offset

    @rule(partition=partitions, offset=st.integers(0, 9))
    def a_tool_commits(self, partition: tuple[str, int], offset: int) -> None:
        may = self._group is None or self._group.state is GroupState.EMPTY
        outcome = self.driver.commit({partition: offset})
        assert may == (outcome == {partition: ErrorCode.NONE})
        if may:
            self.acknowledged[partition] = offset

    @precondition(lambda self: self._group is not None and not self._group.members)
    @rule()
    def a_tool_deletes_the_group(self) -> None:
        if self.driver.delete_group() is ErrorCode.NONE:
            self.acknowledged.clear()
            self.lives += 1
            for client in self.clients:
                client.past.clear()
            assert self._group is None

    @rule(index=clients)
    def an_old_message_arrives(self, index: int) -> None:
        client = self.clients[index]
        for member in client.past[:2]:
            given = {member.member_id: b"old"}
            if member.generation_id != self._generation:
                ticket = self.driver.sync(member, given, instance_id=client.instance_id)
                assert self.driver.error(ticket) is not ErrorCode.NONE
                error = self.driver.heartbeat(member.member_id, member.generation_id)
                assert error is not ErrorCode.NONE

    # What the world does

    @rule(ms=st.sampled_from([1, 900, 5_000, 9_999]))
    def time_passes(self, ms: int) -> None:
        self.driver.advance(ms)

    @rule()
    def a_long_time_passes(self) -> None:
        self.driver.advance(70_000)

    @rule()
    def the_coordinator_moves(self) -> None:
        former = self.driver
        former.resign()
        self.driver = former.restarted()
        self.driver.answers = former.answers
        self.driver._last_ticket = former._last_ticket
        assert not self.driver.unanswered

    # What must always hold

    @invariant()
    def offsets_are_the_last_acknowledged(self) -> None:
        assert self.driver.committed() == self.acknowledged

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        members = [] if self._group is None else self._group.members.values()
        parked = {member.join_ticket for member in members}
        parked |= {member.sync_ticket for member in members}
        assert self.driver.unanswered == parked - {None}

    @invariant()
    def the_group_is_consistent(self) -> None:
        group = self._group
        if group is None:
            return
        assert (group.leader_id is None) == (not group.members)
        assert group.leader_id is None or group.leader_id in group.members
        static = {m.instance_id: m.member_id for m in group.members.values() if m.is_static}
        assert group.static_members == static
        match group.state:
            case GroupState.EMPTY:
                assert not group.members
            case GroupState.STABLE:
                assert group.members
                assert all(not member.is_new for member in group.members.values())
                assert all(member.join_ticket is None for member in group.members.values())
                assert all(member.sync_ticket is None for member in group.members.values())
            case GroupState.COMPLETING_REBALANCE:
                assert group.join_deadline_ms is None
                assert group.sync_deadline_ms is not None or not group.pending_syncs
            case GroupState.PREPARING_REBALANCE:
                assert group.join_deadline_ms is not None
            case GroupState.DEAD:
                raise AssertionError("a dead group is still listed")

    @invariant()
    def every_deadline_is_kept(self) -> None:
        for group in self.driver.shard.groups.values():
            due_ms, watched_ms = group.next_deadline_ms, self.driver.shard.next_deadline_ms
            if due_ms is not None:
                assert watched_ms is not None
                assert watched_ms <= due_ms
                assert due_ms > self.driver.now_ms

    @invariant()
    def the_log_tells_the_settled_state(self) -> None:
        live, loaded = self._group, self.driver.restarted().shard.groups.get(GROUP)
        if live is None or live.state not in {GroupState.STABLE, GroupState.EMPTY}:
            return
        if loaded is None:  # nothing but an id that was given out has ever been decided
            assert live.generation == 0
            return
        assert loaded.state is live.state
        assert [getattr(loaded, name) for name in REPLAYED] == [
            getattr(live, name) for name in REPLAYED
        ]
        assert _assignments(loaded) == _assignments(live)

    # One client's next step, as a consumer would take it

    def _step(self, client: Client) -> None:
        if client.joining is not None:
            self._take_join_answer(client)
        elif client.syncing is not None:
            self._take_sync_answer(client)
        elif client.joined is None:
            client.joining = self.driver.join(
                client.member_id,
                instance_id=client.instance_id,
                must_return=True,
                rebalance_timeout_ms=20_000,
            )
        elif not client.is_assigned:
            self._sync(client, client.joined)
        else:
            self._beat(client, client.joined)

    def _take_join_answer(self, client: Client) -> None:
        answer = self.driver.answers.get(client.joining or 0)
        if answer is None:
            return
        client.joining = None
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif error is not ErrorCode.NONE:
            client.heed(error)
        else:
            client.joined = answer
            client.member_id = answer.member_id
            client.past.insert(0, answer)

    def _sync(self, client: Client, member: JoinGroupResponse) -> None:
        names = [] if member.skip_assignment else [other.member_id for other in member.members]
        given = {name: f"{member.generation_id}:{name}".encode() for name in names}
        client.syncing = self.driver.sync(member, given, instance_id=client.instance_id)
        client.lives = self.lives

    def _take_sync_answer(self, client: Client) -> None:
        answer = self.driver.answers.get(client.syncing or 0)
        if answer is None or client.joined is None:
            return
        client.syncing = None
        assert isinstance(answer, SyncGroupResponse)
        if answer.error_code != ErrorCode.NONE:
            client.heed(ErrorCode(answer.error_code))
            return
        client.is_assigned = True
        generation, name = client.joined.generation_id, client.instance_id or client.member_id
        # A generation gives each member one assignment, and never another generation's.
        assert answer.assignment.startswith(f"{generation}:{name}".encode())
        partition = (client.lives, generation, name)
        assert self.assigned.setdefault(partition, answer.assignment) == answer.assignment

    def _beat(self, client: Client, member: JoinGroupResponse) -> None:
        error = self.driver.heartbeat(
            member.member_id, member.generation_id, instance_id=client.instance_id
        )
        if error is ErrorCode.NONE:
            assert self._group is not None
            assert member.member_id in self._group.members
            assert member.generation_id == self._generation
        else:
            client.heed(error)

    @property
    def _group(self) -> Group | None:
        return self.driver.shard.groups.get(GROUP)

    @property
    def _generation(self) -> int | None:
        return None if self._group is None else self._group.generation


def _assignments(group: Group) -> list[tuple[str, str | None, bytes]]:
    return [(m.member_id, m.instance_id, m.assignment) for m in group.members.values()]


TestGroupMachine = GroupMachine.TestCase
TestGroupMachine.settings = settings(stateful_step_count=50, deadline=None)
