"""The target of a promotion opened: what that would open is looked at directly before it."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from failover.journal.execute import StepFailed
from failover.journal.facts import Facts
from failover.journal.steps import StepName
from failover.moving.effects import PromotionEffects
from tests.doubles.fake_cluster import run_fake_cluster
from tests.failover.between import effects_between
from tests.failover.fencing import FencedCluster
from tests.failover.journals import begun, done, unnoted

pytestmark = pytest.mark.usefixtures("taken_evidence")


@dataclass(frozen=True, slots=True)
class Closed:
    """A promotion of dc2, which the flow out of it has closed for topics that this one lacks."""

    target: FencedCluster
    effects: PromotionEffects

    async def open(self, *, known: tuple[str, ...] = (), is_insisted: bool = False) -> None:
        """Open dc2, where the preflight noted these topics."""
        facts: Facts = {"topics": {"orders": 1}, "fence": ["orders"], "one_way": list(known)}
        journal = done(begun(), StepName.PREFLIGHT, facts)
        effects = replace(self.effects, is_insisted=is_insisted)
        await effects.run(StepName.OPEN_TARGET, journal, unnoted)


@asynccontextmanager
async def closed_target(folder: Path, *closed: str) -> AsyncIterator[Closed]:
    async with run_fake_cluster() as source, run_fake_cluster() as target:
        for topic in {"orders", *closed}:
            source.create_topic(topic, 0)
            target.create_topic(topic, 0)
        fenced = FencedCluster(target, topics=("orders", *closed))
        fenced.serve()
        async with effects_between(folder, source, target, "orders") as effects:
            shared = effects.shared_fence
            [flow] = shared.configuration.flows
            everything = replace(
                flow.topics, include=(*flow.topics.include, *map(re.compile, closed))
            )
            back = replace(flow, source="dc2", target="dc1", topics=everything)
            configuration = replace(shared.configuration, flows=(flow, back))
            shared = replace(shared, configuration=configuration)
            yield Closed(fenced, replace(effects, shared_fence=shared))


async def test_a_target_that_is_closed_for_what_moves_alone_is_opened(tmp_path: Path) -> None:
    async with closed_target(tmp_path) as there:
        await there.open()
        assert there.target.topics == ()


async def test_a_topic_that_became_one_way_since_the_plan_keeps_the_target_closed(
    tmp_path: Path,
) -> None:
    async with closed_target(tmp_path, "clicks") as there:
        with pytest.raises(StepFailed, match=r"closed for clicks .* does not bring what dc1"):
            await there.open()
        assert there.target.topics == ("orders", "clicks")


async def test_a_one_way_topic_is_opened_where_somebody_insists(tmp_path: Path) -> None:
    async with closed_target(tmp_path, "clicks") as there:
        await there.open(is_insisted=True)
        assert there.target.topics == ()


async def test_what_somebody_insisted_on_is_opened_by_a_controller_that_takes_over(
    tmp_path: Path,
) -> None:
    async with closed_target(tmp_path, "clicks") as there:
        await there.open(known=("clicks",))
        assert there.target.topics == ()
