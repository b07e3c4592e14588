"""A promotion of twenty thousand partitions, from its plan to the audit, on a real ZooKeeper."""

from dataclasses import dataclass, replace

import pytest
import trio

from failover.journal.execute import Executor, Note, StepOutcome
from failover.journal.facts import Facts
from failover.journal.journal import Journal
from failover.journal.journals import forget_superfluous, read_journals
from failover.journal.lease import Lease, hold_lease
from failover.journal.steps import PromotionKind, PromotionState, StepName
from failover.journal.store import WitnessStore
from failover.planning.plan import Plan, PromotionRequest, decide
from runtime.coordination.long_nodes import read_document
from runtime.coordination.witness import ActiveSite, WitnessPaths
from runtime.coordination.zookeeper import ZooKeeper
from runtime.process.clock import now_ms
from spark_audit.snapshot.seals import promotion_of
from tests.failover.journals import full_ends, full_facts
from tests.failover.plans import ALL_WELL, DC1, DC2, PLANNED
from tests.zookeeper import open_witness_of_tests
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.integration

PATHS = WitnessPaths(root="/many-partitions")
TOPICS = {f"team.service-{number}.events": 4 for number in range(5_000)}
ENDS = {
    TopicPartition(topic, index): 100 for topic, count in TOPICS.items() for index in range(count)
}
TIME_LIMIT_S = 60


@pytest.mark.parametrize("kind", PromotionKind)
def test_the_planner_refuses_no_number_of_partitions(kind: PromotionKind) -> None:
    source = replace(DC1, ends=ENDS)
    if kind is PromotionKind.SOURCE_LOST:
        source = replace(DC1, ends={}, fault="no answer within 3 s")
    seen = replace(ALL_WELL, source=source, target=replace(DC2, ends=ENDS), mirrored=ENDS)
    plan = decide(seen, PromotionRequest(site="dc2", kind=kind))
    assert isinstance(plan, Plan)
    assert len(plan.partitions) == 20_000


class Killed(BaseException):
    """The controller's process is no more."""


@dataclass(frozen=True, slots=True)
class Noting:
    """Effects that note as much as such a promotion does; at one step the controller is killed."""

    killed_at: StepName | None = None

    async def run(self, step: StepName, _: Journal, __: Note) -> StepOutcome:
        await trio.lowlevel.checkpoint()
        if step is self.killed_at:
            raise Killed
        ends = full_ends(TOPICS) if step is StepName.SEAL else None
        return StepOutcome(facts=full_facts(TOPICS).get(step, {}), partitions=ends)

    async def undo(self, *_: object) -> Facts:
        await trio.lowlevel.checkpoint()
        return {}


def executor(store: WitnessStore, effects: Noting) -> Executor:
    return Executor(store=store, effects=effects, clock_ms=now_ms, report=lambda _: None)


async def promote_twice_killed(zookeeper: ZooKeeper, lease: Lease) -> Journal:
    """One controller is killed behind the drain, its successor behind the seal."""
    plan = decide(
        replace(ALL_WELL, source=replace(DC1, ends=ENDS), last_epoch=0, mirrored=ENDS), PLANNED
    )
    assert isinstance(plan, Plan)
    journal = Journal(
        epoch=plan.epoch, site=plan.site, source=plan.source, kind=plan.kind, started_ms=now_ms()
    )
    store = WitnessStore(zookeeper, PATHS, lease, plan.epoch)
    await store.create(journal)
    with pytest.raises(Killed):
        await executor(store, Noting(StepName.GROUPS_LEAVE)).carry_out(journal)
    for killed_at in (StepName.OPEN_TARGET, None):
        store = WitnessStore(zookeeper, PATHS, lease, plan.epoch)
        successor = executor(store, Noting(killed_at))
        journal = await successor.look_again(await store.take_over())
        if killed_at is None:
            return await successor.carry_out(journal)
        with pytest.raises(Killed):
            await successor.carry_out(journal)
    raise AssertionError("the last controller ends it")


@pytest.mark.story
async def test_twenty_thousand_partitions_move_though_controllers_are_killed(
    empty_zookeeper: str,
) -> None:
    with trio.fail_after(TIME_LIMIT_S):
        async with (
            open_witness_of_tests(empty_zookeeper, 10_000) as zookeeper,
            hold_lease(zookeeper, PATHS.lease, wait_ms=1_000) as lease,
        ):
            await zookeeper.create(PATHS.active, ActiveSite(site="dc1", epoch=0).encode())
            ended = await promote_twice_killed(zookeeper, lease)
            await forget_superfluous(zookeeper, PATHS, lease)
            assert ended.state is PromotionState.DONE
            assert await read_journals(zookeeper, PATHS) == [ended]
            node = await read_document(zookeeper, PATHS.journal(1), PATHS.journal_parts(1))
            active = await zookeeper.get(PATHS.active)
    assert len(ended.moving) == len(ended.partitions) == 20_000
    assert active is not None
    assert ActiveSite.decode(active.data) == ActiveSite(site="dc2", epoch=1)
    assert node is not None
    promotion = promotion_of([node.data], source="dc1", target="dc2")
    assert promotion is not None
    assert promotion.seals.keys() == ENDS.keys()
