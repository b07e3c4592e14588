"""What becomes of a partition that cannot go on: a table of causes and policies, walked."""

from uuid import UUID

import pytest

from mirror.flow.flow_state import FlowState
from mirror.flow.order_execution import apply_restart
from mirror.state.batches import Cursor
from mirror.state.orders import How, Orders, Restart, Scope
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import ASKED_AGAIN_MS, STOPPED, PartitionState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from runtime.configuration.flow_section import POLICIES, Policy
from tests.mirror.building import flow_with
from wire.net import AuthenticationFailed, ConnectionClosed

CAUSES = [(cause, policy) for cause, allowed in POLICIES.items() for policy in Policy]


def test_every_cause_is_a_state_that_stops_and_loses_nothing_by_default() -> None:
    for cause, allowed in POLICIES.items():
        assert PartitionState[cause.upper()] in STOPPED
        assert allowed[0] is Policy.STOP


@pytest.mark.parametrize(("cause", "policy"), CAUSES)
def test_each_policy_is_followed_for_each_cause(cause: str, policy: Policy) -> None:
    flow, partition = flow_with(**{cause: policy})
    state = PartitionState[cause.upper()]
    flow.interruptions.stop(partition, state, "why", 5, source_end=40)
    match policy:
        case Policy.STOP:
            assert (partition.state, partition.skips.pass_over) == (state, None)
            assert not flow.orders.to_begin_anew
        case Policy.SKIP:
            assert (partition.state, partition.skips.pass_over) == (PartitionState.WAITING, 40)
            assert partition.status.reason == "left out: why"
            assert not flow.orders.to_begin_anew
        case Policy.RESTART:
            assert partition.state is state
            assert flow.orders.to_begin_anew == {"t"}
        case Policy.QUARANTINE | Policy.MERGE:
            # Of a target's own records, which positioning finds, and of nothing else.
            assert (partition.state, partition.skips.pass_over) == (state, None)
            assert not flow.orders.to_begin_anew


@pytest.mark.parametrize("state", [one for one in PartitionState if one in STOPPED])
def test_every_stopped_partition_goes_on_when_somebody_decides_so(state: PartitionState) -> None:
    flow, partition = flow_with()
    flow.interruptions.stop(partition, state, "why", 5, source_end=40)
    assert partition.state is state
    partition.retry("a command", 9)
    assert (partition.state, partition.retries.at_ms) == (PartitionState.WAITING, 9)


def test_a_command_to_skip_holds_once_and_only_where_skipping_is_possible() -> None:
    flow, partition = flow_with()
    partition.skips.allow_once(Policy.SKIP)
    assert flow.interruptions.policy_for(partition, PartitionState.TOPIC_RECREATED) is Policy.STOP
    assert flow.interruptions.policy_for(partition, PartitionState.RETENTION_OVERRUN) is Policy.SKIP
    flow.interruptions.stop(partition, PartitionState.RECORD_TOO_LARGE, "why", 5, source_end=40)
    assert partition.skips.pass_over == 40
    flow.interruptions.stop(partition, PartitionState.RECORD_TOO_LARGE, "another", 6, source_end=50)
    assert partition.state is PartitionState.RECORD_TOO_LARGE


def test_refused_credentials_are_a_state_and_a_broken_connection_is_not() -> None:
    flow, partition = flow_with()
    flow.interruptions.fail(partition, "target broker 0", ConnectionClosed("dc2: h:1: closed"), 5)
    states = [partition.state.value]
    flow.interruptions.fail(partition, "target broker 0", AuthenticationFailed("dc2: h:1: no"), 6)
    states.append(partition.state.value)
    assert states == ["waiting", "not authorised"]
    assert partition.status.reason == "target broker 0: dc2: h:1: no"
    assert partition.retries.at_ms == 6 + ASKED_AGAIN_MS[PartitionState.NOT_AUTHORISED]


def test_a_right_asked_for_again_in_vain_is_the_same_trouble() -> None:
    flow, partition = flow_with()
    flow.interruptions.stop(partition, PartitionState.NOT_AUTHORISED, "first", 5)
    partition.move(PartitionState.POSITIONING, 20_000)
    partition.go_on(Cursor(0, Place(0), 0), 20_001)
    flow.interruptions.stop(partition, PartitionState.NOT_AUTHORISED, "again", 20_002)
    assert (partition.status.since_ms, partition.status.reason) == (5, "again")


def apply(flow: FlowState, restart: Restart) -> int:
    return apply_restart(flow, restart, flow.orders.remaining(restart, flow.partitions.own))


def test_a_restart_is_carried_out_once_it_is_done_to_all_that_is_here_now() -> None:
    flow, stopped = flow_with()
    flow.interruptions.stop(stopped, PartitionState.TARGET_REFUSED, "why", 5, source_end=40)
    restart = Restart(scope=Scope(topic="t"), how=How.SKIP, by="me@h", at_ms=1)
    flow.orders.follow(Orders(restarts=(restart,)))

    def carried_out() -> frozenset[Restart]:
        return flow.orders.carried_out(flow.partitions.own)

    assert carried_out() == frozenset(), "it has not begun"
    assert flow.orders.begin(restart)
    assert carried_out() == frozenset()
    assert apply(flow, restart) == 1
    assert carried_out() == {restart}
    assert stopped.skips.pass_over == 40
    came = MirroredPartition(
        "t", 1, topic_id=UUID(int=1), offset_map=OffsetMap.from_starts([(0, 0)], 0), now_ms=0
    )
    flow.partitions.take(came)
    assert carried_out() == frozenset(), "one came from another worker"
    assert apply(flow, restart) == 1
    assert carried_out() == {restart}
    flow.orders.follow(Orders())
    assert carried_out() == frozenset(), "it has been taken out"


def test_what_is_to_be_left_out_of_a_paused_partition_is_when_it_is_resumed() -> None:
    flow, partition = flow_with()
    partition.target.doubt_position()  # the daemon was started meanwhile
    partition.pause("paused by me@h", 5)
    restart = Restart(scope=Scope(topic="t"), how=How.SKIP, by="me@h", at_ms=1)
    assert apply(flow, restart) == 1
    assert partition.state is PartitionState.PAUSED
    partition.retry("resumed", 6)
    assert flow.interruptions.policy_for(partition, PartitionState.RETENTION_OVERRUN) is Policy.SKIP
