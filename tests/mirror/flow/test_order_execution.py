"""Orders in a real ZooKeeper, and what a worker does about them."""

import re
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

import pytest

from mirror.flow.flow_state import FlowState
from mirror.flow.order_execution import ENDS, OrderExecution
from mirror.state.orders import How, Orders, Restart, Scope, mark_of
from mirror.state.partition_state import PartitionState
from runtime.configuration.flow_section import PatternSet, Policy
from runtime.coordination.zookeeper import ZooKeeper, open_zookeeper
from tests.mirror.building import flow_with
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.integration

PATH = "/orders"
FLOW = "dc1->dc2"


def session_of(address: str) -> AbstractAsyncContextManager[ZooKeeper]:
    return open_zookeeper(address, session_timeout_ms=4_000)


def leading() -> FlowState:
    """Return the flow of a worker that leads and has the topic `t`."""
    flow, _ = flow_with()
    flow.share.lead()
    flow.share.see({TopicPartition("t", 0)})
    return flow


async def ordered(zookeeper: ZooKeeper) -> Orders:
    node = await zookeeper.get(PATH)
    return Orders() if node is None else Orders.decode(node.data)


async def look(execution: OrderExecution, flow: FlowState, zookeeper: ZooKeeper) -> None:
    """See the node, and carry out what it orders."""
    execution.see(await zookeeper.get(PATH))
    await carry_out(execution, flow, zookeeper)


async def carry_out(
    execution: OrderExecution, flow: FlowState, zookeeper: ZooKeeper, epoch: int = 4
) -> None:
    """Carry out what was seen, in the fourth epoch of the active site."""
    await execution.carry_out(
        flow, zookeeper, epoch=epoch, is_placed=True, is_carried_out=lambda _: True
    )


async def test_a_topic_is_begun_anew_once_whenever_anothers_policy_orders_it(
    empty_zookeeper: str,
) -> None:
    flow, execution = leading(), OrderExecution(FLOW, PATH)
    async with session_of(empty_zookeeper) as zookeeper:
        flow.orders.begin_anew("t")
        late = restart(at_ms=1)
        await zookeeper.create(PATH, Orders(restarts=(late,)).encode())
        execution.see(None)  # it came after we looked
        await carry_out(execution, flow, zookeeper)
        await look(execution, flow, zookeeper)
        assert flow.orders.to_begin_anew == set()
        assert await ordered(zookeeper) == Orders()

        await put(zookeeper, restart(at_ms=2))
        await look(execution, flow, zookeeper)
        assert flow.orders.to_begin_anew == {"t"}


async def test_settings_that_change_while_nothing_new_is_ordered_pause_and_resume(
    empty_zookeeper: str,
) -> None:
    flow, partition = flow_with()
    execution, nothing = OrderExecution(FLOW, PATH), flow.config
    mirrored = replace(nothing, topics=PatternSet(include=(re.compile("t"),), exclude=()))
    async with session_of(empty_zookeeper) as zookeeper:
        seen = []
        for config in (mirrored, nothing, mirrored):
            flow.take_config(config)
            for _ in range(2):
                await carry_out(execution, flow, zookeeper)
                seen.append(partition.state)
    flowing, paused, waits = (
        PartitionState.CATCHING_UP,
        PartitionState.PAUSED,
        PartitionState.WAITING,
    )
    assert seen == [flowing, flowing, paused, paused, waits, waits]


async def test_what_somebody_orders_of_a_topic_begun_anew_is_done(empty_zookeeper: str) -> None:
    flow, execution = leading(), OrderExecution(FLOW, PATH)
    async with session_of(empty_zookeeper) as zookeeper:
        flow.orders.begin_anew("t")
        order = replace(restart(at_ms=1), by="somebody")
        await zookeeper.create(PATH, Orders(restarts=(order,)).encode())
        await look(execution, flow, zookeeper)
        assert flow.orders.to_begin_anew == {"t"}
        assert await ordered(zookeeper) == Orders(restarts=(order,))  # until it is done


async def test_who_does_not_lead_orders_what_its_policy_wants(empty_zookeeper: str) -> None:
    (flow, _), execution = flow_with(), OrderExecution(FLOW, PATH)
    flow.share.see({TopicPartition("t", 0)})
    async with session_of(empty_zookeeper) as zookeeper:
        flow.orders.want_anew({"t"})
        await look(execution, flow, zookeeper)
        [order] = (await ordered(zookeeper)).restarts
        assert (order.scope, order.how) == (Scope(topic="t"), How.ANEW)
        assert order.by == f"the policy of {FLOW}"
        assert flow.orders.to_begin_anew == set()


@pytest.mark.parametrize("epoch", [3, None])
async def test_what_was_ordered_before_the_active_site_changed_is_taken_out_undone(
    empty_zookeeper: str, epoch: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    flow, execution = leading(), OrderExecution(FLOW, PATH)
    old = replace(restart(at_ms=1), by="me", epoch=epoch)
    async with session_of(empty_zookeeper) as zookeeper:
        await zookeeper.create(PATH, Orders(restarts=(old,)).encode())
        await look(execution, flow, zookeeper)
        assert flow.orders.to_begin_anew == set()
        assert await ordered(zookeeper) == Orders()
        assert "restart (anew) of t, ordered by me, is not carried out" in caplog.text


async def test_an_order_of_an_epoch_that_is_not_heard_of_yet_is_carried_out(
    empty_zookeeper: str,
) -> None:
    flow, execution = leading(), OrderExecution(FLOW, PATH)
    async with session_of(empty_zookeeper) as zookeeper:
        later = replace(restart(at_ms=1), epoch=5)
        await zookeeper.create(PATH, Orders(restarts=(later,)).encode())
        await look(execution, flow, zookeeper)
        assert flow.orders.to_begin_anew == {"t"}


async def carry_out_and_die(flow: FlowState, zookeeper: ZooKeeper) -> None:
    """Begin what is ordered, as a daemon that is killed before it takes it out."""
    execution = OrderExecution(FLOW, PATH)
    execution.see(await zookeeper.get(PATH))
    await execution.carry_out(
        flow, zookeeper, epoch=4, is_placed=True, is_carried_out=lambda _: False
    )


@pytest.mark.parametrize("how", [How.SKIP, How.QUARANTINE, How.MERGE, How.RETRY])
async def test_what_a_killed_daemon_has_begun_is_not_done_again_by_the_next(
    empty_zookeeper: str, how: How, caplog: pytest.LogCaptureFixture
) -> None:
    """What has stopped the partition by then may be something else."""
    order = replace(restart(at_ms=1), how=how, by="me")
    states, allowed = [], []
    async with session_of(empty_zookeeper) as zookeeper:
        await zookeeper.create(PATH, Orders(restarts=(order,)).encode())
        for _ in range(2):
            flow = leading()
            [partition] = flow.partitions.own.values()
            partition.stop(PartitionState.TARGET_DIVERGED, "others have written", 5)
            await carry_out_and_die(flow, zookeeper)
            states.append(partition.state)
            allowed.append(partition.skips.allowed_once)
        await look(OrderExecution(FLOW, PATH), flow, zookeeper)
        assert await ordered(zookeeper) == Orders()
    is_repeated = how is How.RETRY
    second = PartitionState.WAITING if is_repeated else PartitionState.TARGET_DIVERGED
    assert states == [PartitionState.WAITING, second]
    assert allowed == [ENDS.get(how), None]
    assert ("ordered by me, is not begun again for 1 partitions" in caplog.text) is not is_repeated


async def test_what_was_not_begun_for_a_partition_is_done_by_who_gets_it(
    empty_zookeeper: str,
) -> None:
    order = replace(restart(at_ms=1), how=How.MERGE, by="me")
    async with session_of(empty_zookeeper) as zookeeper:
        begun, _ = Orders(restarts=(order,)).begun(order, {mark_of("t", 7)})
        await zookeeper.create(PATH, begun.encode())
        flow = leading()
        [partition] = flow.partitions.own.values()
        await carry_out_and_die(flow, zookeeper)
        assert partition.skips.allowed_once is Policy.MERGE
        [left] = (await ordered(zookeeper)).restarts
        assert left.begun == {mark_of("t", 0), mark_of("t", 7)}


async def test_a_copy_is_deleted_once_by_an_order_whatever_becomes_of_the_daemon(
    empty_zookeeper: str, caplog: pytest.LogCaptureFixture
) -> None:
    order = replace(restart(at_ms=1), by="me")
    async with session_of(empty_zookeeper) as zookeeper:
        await zookeeper.create(PATH, Orders(restarts=(order,)).encode())
        seen = []
        for _ in range(2):  # the first is killed before it deletes, or directly behind it
            flow = leading()
            for _ in range(2):
                await carry_out_and_die(flow, zookeeper)
                seen.append("t" in flow.orders.to_begin_anew and flow.orders.may_delete("t"))
        assert seen == [False, True, False, False]
        assert await ordered(zookeeper) == Orders()
    assert "restart (anew) of t, ordered by me, is not begun again for t" in caplog.text


def restart(at_ms: int) -> Restart:
    by = f"the policy of {FLOW}"
    return Restart(scope=Scope(topic="t"), how=How.ANEW, by=by, at_ms=at_ms, epoch=4)


async def put(zookeeper: ZooKeeper, order: Restart) -> None:
    node = await zookeeper.get(PATH)
    assert node is not None
    await zookeeper.set(PATH, Orders(restarts=(order,)).encode(), version=node.version)
