"""What a lost source had and the target never got is named from what the mirror knew last."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import trio

from failover.journal.facts import Facts
from failover.journal.journal import Journal, begin_step
from failover.journal.steps import PromotionKind, StepName
from failover.journal.store import WitnessStore
from failover.promote import PromotionController
from mirror.workers.handover import Assignment, Leaving
from runtime.configuration.config import load
from runtime.coordination.witness import WitnessGarbled, WitnessPaths, assigned_partitions
from runtime.coordination.zookeeper import ZNode, ZooKeeper
from tests.doubles.fake_cluster import run_fake_cluster
from tests.failover.journals import unnoted
from tests.failover.sleeping import SleepyWitness
from tests.failover.two_sites import promotable
from wire.topic_partition import TopicPartition

KNOWN = Assignment(
    version=3,
    owners={
        TopicPartition("orders", 0): "w",
        TopicPartition("orders", 1): "w",
        TopicPartition("only-dc1", 0): "v",
        TopicPartition("heartbeats", 0): "v",
    },
    leaving={TopicPartition("only-dc1", 1): Leaving("v", 2, "w")},
)


def test_an_assignment_tells_all_that_the_flow_knew_of() -> None:
    assert assigned_partitions(KNOWN.encode()) == {*KNOWN.owners, *KNOWN.leaving}
    for data in (b"", b"{}", Assignment().encode()[:-3]):
        with pytest.raises(WitnessGarbled, match="no valid assignment"):
            assigned_partitions(data)


@pytest.mark.parametrize(
    ("data", "unmirrored"),
    [(KNOWN.encode(), {"only-dc1": 2, "orders": 1}), (b"garbled", {}), (None, {})],
)
@pytest.mark.usefixtures("taken_evidence")
async def test_the_preflight_of_a_lost_source_finds_what_only_that_had(
    tmp_path: Path, data: bytes | None, unmirrored: dict[str, int]
) -> None:
    class Witness(SleepyWitness):
        async def get(self, path: str) -> ZNode | None:
            if path != WitnessPaths(root="/r").assignment("dc1", "dc2"):
                return await super().get(path)
            await trio.lowlevel.checkpoint()
            if data is None:
                return None
            return ZNode(data=data, version=0, created_zxid=0, modified_zxid=0, ephemeral_owner=0)

    assert await preflight(tmp_path, Witness()) == {
        "topics": {"orders": 1},
        "fence": ["orders"],
        "unmirrored": unmirrored,
    }


@pytest.mark.usefixtures("taken_evidence")
async def test_a_broker_that_has_just_started_is_not_the_only_one_that_is_asked_what_moves(
    tmp_path: Path,
) -> None:
    """It knows no topics, and the records of those that it leaves out would never be sealed."""

    class Witness(SleepyWitness):
        async def get(self, path: str) -> ZNode | None:
            if path != WitnessPaths(root="/r").assignment("dc1", "dc2"):
                return await super().get(path)
            await trio.lowlevel.checkpoint()
            return ZNode(
                data=KNOWN.encode(), version=0, created_zxid=0, modified_zxid=0, ephemeral_owner=0
            )

    found = await preflight(tmp_path, Witness(), ignorant=True)
    assert (found["topics"], found["unmirrored"]) == ({"orders": 1}, {"only-dc1": 2, "orders": 1})


async def preflight(folder: Path, witness: SleepyWitness, *, ignorant: bool = False) -> Facts:
    """What is found when dc1 is lost, and dc2 has one partition of orders.

    The broker of dc2 that is met first may not have heard of that.
    """
    async with run_fake_cluster(2) as target:
        if ignorant:
            target.brokers[0].cut_off()
        target.create_topic("orders", 1)
        host, port = target.bootstrap[0]
        file = folder / "dc.yaml"
        file.write_text(
            promotable(dc1="a:1", dc2=f"{host}:{port}", witness="w:1", path="/r", topics="o.*")
        )
        configuration = load(file)
        controller = PromotionController(
            configuration=configuration,
            zookeeper=cast("ZooKeeper", witness),
            lease=witness.lease(),
            show=lambda _: None,
        )
        kind = PromotionKind.SOURCE_LOST
        journal = Journal(epoch=1, site="dc2", source="dc1", kind=kind, started_ms=0)
        journal = begin_step(journal, StepName.PREFLIGHT, 0)
        [record] = journal.steps
        journal = replace(journal, steps=(replace(record, facts={"fence": ["orders"]}),))
        [flow] = configuration.flows
        async with controller._effects(cast("WitnessStore", None), flow) as effects:
            return (await effects.run(StepName.PREFLIGHT, journal, unnoted)).facts
