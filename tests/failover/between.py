"""A promotion's steps between two fake clusters, with a session that is in order."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from failover.journal.store import WitnessStore
from failover.moving.effects import PromotionEffects
from failover.promote import PromotionController
from runtime.configuration.config import load
from runtime.coordination.zookeeper import ZooKeeper
from tests.dc_yaml import Topics
from tests.doubles.fake_cluster import FakeCluster
from tests.failover.sleeping import SleepyWitness
from tests.failover.two_sites import promotable


@asynccontextmanager
async def effects_between(
    folder: Path, source: FakeCluster, target: FakeCluster, topics: Topics
) -> AsyncIterator[PromotionEffects]:
    """Give what each step does to the two; nothing is noted anywhere."""
    file = folder / "dc.yaml"
    dc1, dc2 = (f"{host}:{port}" for host, port in (*source.bootstrap, *target.bootstrap))
    file.write_text(promotable(dc1=dc1, dc2=dc2, witness="w:1", path="/r", topics=topics))
    witness, configuration = SleepyWitness(), load(file)
    controller = PromotionController(
        configuration=configuration,
        zookeeper=cast("ZooKeeper", witness),
        lease=witness.lease(),
        show=lambda _: None,
    )
    [flow] = configuration.flows
    async with controller._effects(cast("WitnessStore", None), flow) as effects:
        yield effects
