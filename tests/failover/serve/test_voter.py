"""One voter: what it sees, how it votes, and what it asks of a promotion."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from socket import socket
from typing import Any, cast

import pytest

import failover.serve.voter
from failover.automatic.hold import Hold
from failover.automatic.quorum import Agreement, InTheWay, Obstacle
from failover.automatic.votes import Polling, Sight, Vote
from failover.journal.journal import Journal
from failover.journal.journals import JournalReader
from failover.journal.steps import PromotionKind, PromotionState
from failover.planning.loss import Loss, PartitionLoss
from failover.planning.plan import PromotionRequest, decide
from failover.planning.refusal import Cause, Refusal
from failover.promote import PromotionRefused
from failover.serve.automatic_metrics import AutomaticCollector
from failover.serve.voter import Voter, VoterTaken, configured, look_at_active, why_not_healthy
from failover.sites.site import Site
from failover.view.snapshot import look_whether_lost
from runtime.configuration.config import Configuration, ConfigurationError, load
from runtime.configuration.failover_section import LossBudget
from runtime.coordination.witness import ActiveSite, WitnessPaths
from runtime.coordination.zookeeper import ZNode, ZooKeeper
from runtime.process.ports import free_port
from tests.dc_yaml import dc_yaml
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.memory_nodes import MemoryNodes
from tests.failover.plans import ALL_WELL, DC1
from wire.net import open_cluster
from wire.topic_partition import TopicPartition

VOTERS = {"a": "dc1", "b": "dc2", "c": "office"}
PATHS = WitnessPaths(root="/kafka-dr")
ACTIVE = ActiveSite(site="dc1", epoch=3)
GONE = Vote(place="dc2", run="r", number=9, since=4, epoch=3, sees=Sight.GONE, why="silent")
AGREED = Agreement(site="dc2", voters=("a", "b"))
OURS, ANOTHERS = 7, 8


class SessionNodes(MemoryNodes):
    """Nodes of which those of votes go with a session."""

    session_id = OURS
    owner = OURS

    async def create(
        self, path: str, data: bytes = b"", *, make_parents: bool = False, ephemeral: bool = False
    ) -> str:
        assert ephemeral
        return await super().create(path, data, make_parents=make_parents)

    async def get(self, path: str) -> ZNode | None:
        node = await super().get(path)
        return None if node is None else replace(node, ephemeral_owner=self.owner)


def with_voters(folder: Path, **more: Any) -> Configuration:
    file = folder / "dc.yaml"
    automatic = {"voters": VOTERS, "after_ms": 5_000}
    file.write_text(
        dc_yaml(failover={"loss_budget": {"records": 0}, "automatic": automatic, **more})
    )
    return load(file)


def voter_of(configuration: Configuration, name: str = "a") -> Voter:
    config = configuration.failover.automatic
    assert config is not None
    return Voter(configuration, config, name, AutomaticCollector(config.voters))


def test_a_name_that_is_not_among_the_voters_is_refused(tmp_path: Path) -> None:
    configuration = with_voters(tmp_path)
    with pytest.raises(ConfigurationError, match=r"--voter d: .*voters has a, b, c"):
        configured(configuration, "d")
    assert configured(configuration, "a") == configuration.failover.automatic
    assert configured(configuration, None) is None


def test_a_voter_of_a_file_without_voters_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml())
    with pytest.raises(ConfigurationError, match=r"--voter a: .* has no failover\.automatic"):
        configured(load(file), "a")
    assert configured(load(file), None) is None


async def test_any_broker_that_answers_is_the_site_and_none_is_its_end() -> None:
    async with (
        run_fake_cluster() as cluster,
        open_cluster(cluster.bootstrap, client_id="t") as alive,
        open_cluster((("127.0.0.1", free_port()),), client_id="t") as dead,
    ):
        assert (await look_at_active(alive))[0] is Sight.ANSWERS
        assert (await look_at_active(dead))[0] is Sight.GONE


async def test_a_site_of_which_one_broker_hangs_is_not_gone() -> None:
    """Its host may be off: it neither answers nor refuses, and is asked first each time."""
    with socket() as hung:
        hung.bind(("127.0.0.1", 0))
        hung.listen()
        async with run_fake_cluster() as fake:
            bootstrap = (hung.getsockname(), *fake.bootstrap)
            async with open_cluster(bootstrap, client_id="t") as cluster:
                assert await look_at_active(cluster) == (Sight.ANSWERS, "it answers")
                assert (await look_whether_lost(Site(name="dc1", cluster=cluster), 3)).fault is None


async def test_a_standby_with_a_partition_that_nobody_leads_is_not_healthy(tmp_path: Path) -> None:
    [flow] = with_voters(tmp_path).flows
    async with (
        run_fake_cluster() as cluster,
        open_cluster(cluster.bootstrap, client_id="t") as standby,
        open_cluster((("127.0.0.1", free_port()),), client_id="t") as dead,
    ):
        cluster.create_topic("orders", 0)
        assert await why_not_healthy(standby, flow) is None
        cluster.create_topic("bills", 0, -1)
        assert await why_not_healthy(standby, flow) == "1 partitions have no leader, as bills-1"
        assert await why_not_healthy(dead, flow) is not None


async def test_two_processes_never_vote_under_one_name(tmp_path: Path) -> None:
    nodes, voter = SessionNodes(), voter_of(with_voters(tmp_path))
    zookeeper = cast("ZooKeeper", nodes)
    first, second = (replace(GONE, number=number) for number in (1, 2))
    await voter._publish(zookeeper, first)
    await voter._publish(zookeeper, second)
    assert Vote.decode(nodes.nodes[PATHS.vote("a")][0]) == second
    nodes.owner = ANOTHERS
    with pytest.raises(VoterTaken, match="another process votes as a"):
        await voter._publish(zookeeper, first)
    assert Vote.decode(nodes.nodes[PATHS.vote("a")][0]) == second


async def test_a_promotion_stops_for_a_hold_and_for_a_voter_that_is_answered(
    tmp_path: Path,
) -> None:
    nodes, voter = SessionNodes(), voter_of(with_voters(tmp_path))
    zookeeper = cast("ZooKeeper", nodes)
    nodes.nodes[PATHS.active] = (ACTIVE.encode(), 0)
    nodes.nodes[PATHS.vote("b")] = (GONE.encode(), 0)
    assert await voter._why_stop(zookeeper) is None
    back = replace(GONE, sees=Sight.ANSWERS, why="dc1: it answers")
    nodes.nodes[PATHS.vote("b")] = (back.encode(), 0)
    assert await voter._why_stop(zookeeper) == "voter b is answered: dc1: it answers"
    nodes.nodes[PATHS.hold] = (b"garbage", 0)
    assert "held, by a node in the witness" in (await voter._why_stop(zookeeper) or "")


@dataclass
class Asked:
    """A controller that notes what it is asked for."""

    requests: list[PromotionRequest] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    refuses: str | None = None

    async def promote(self, request: PromotionRequest, _: int) -> Journal:
        self.requests.append(request)
        if self.refuses is not None:
            raise PromotionRefused(self.refuses)
        return Journal(
            epoch=4,
            site=request.site,
            source="dc1",
            kind=request.kind,
            started_ms=0,
            state=PromotionState.ROLLED_BACK,
        )

    @asynccontextmanager
    async def open(
        self, *_: object, name: str, why_stop: Callable[..., Awaitable[str | None]]
    ) -> AsyncIterator["Asked"]:
        self.names.append(name)
        assert why_stop is not None
        yield self


class Agreeing(Voter):
    """A voter that counts as it is told."""

    verdicts: list[Agreement | Obstacle]

    async def _judge(self, *_: object) -> Agreement | Obstacle:
        return self.verdicts.pop(0)


async def promoted(
    asked: Asked, again: Agreement | Obstacle, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Agreeing:
    monkeypatch.setattr(failover.serve.voter, "open_controller", asked.open)
    configuration = with_voters(folder)
    config = configuration.failover.automatic
    assert config is not None
    voter = Agreeing(configuration, config, "a", AutomaticCollector(VOTERS))
    voter.verdicts = [again]
    await voter._promote(AGREED, cast("ZooKeeper", None), cast("JournalReader", None))
    return voter


async def test_what_is_asked_for_insists_on_nothing_and_says_who_agreed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked()
    await promoted(asked, Agreement(site="dc2", voters=("a", "b", "c")), tmp_path, monkeypatch)
    [request] = asked.requests
    assert request == PromotionRequest(site="dc2", kind=PromotionKind.SOURCE_LOST)
    assert asked.names == ["failover serve: automatic, voters a b:"]


async def test_a_loss_that_nobody_knows_refuses_what_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked()
    await promoted(asked, AGREED, tmp_path, monkeypatch)
    unknown = PartitionLoss(
        partition=TopicPartition("orders", 0),
        known_end=None,
        mirrored=None,
        seconds=None,
        may_have_gone_on=True,
    )
    lost = replace(
        ALL_WELL,
        source=replace(DC1, fault="silent"),
        loss=Loss(partitions=(unknown,), age_s=None),
        loss_budget=LossBudget(seconds=60),
    )
    refusal = decide(lost, asked.requests[0])
    assert isinstance(refusal, Refusal)
    assert refusal.cause is Cause.LOSS
    held = replace(lost, loss=None, hold=Hold(garbled="of the tests"))
    assert isinstance(decide(held, asked.requests[0]), Refusal)


async def test_what_has_changed_while_the_lease_was_waited_for_is_heard_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked()
    answers = Obstacle(cause=InTheWay.ANSWERS, reason="dc1 is there")
    await promoted(asked, answers, tmp_path, monkeypatch)
    assert asked.requests == []


async def test_a_promotion_that_is_refused_says_so_and_waits_before_the_next_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(refuses="of 1 partitions it is not known how much would be lost")
    voter = await promoted(asked, AGREED, tmp_path, monkeypatch)
    monkeypatch.setattr(failover.serve.voter, "judge", lambda *_: AGREED)
    nodes = SessionNodes()
    nodes.nodes[PATHS.active] = (ACTIVE.encode(), 0)

    class NoJournals:
        async def read(self, _: int) -> list[Journal]:
            return []

    reader = cast("JournalReader", NoJournals())
    verdict = await Voter._judge(voter, cast("ZooKeeper", nodes), reader)
    assert isinstance(verdict, Obstacle)
    assert verdict.cause is InTheWay.REFUSED
    assert "it is not known how much would be lost" in verdict.reason


def test_metrics_have_each_voter_and_nothing_while_nobody_can_count() -> None:
    collector = AutomaticCollector(VOTERS)

    def samples() -> set[tuple[str, ...]]:
        return {
            tuple(sample.labels.values())
            for metric in collector.collect()
            for sample in metric.samples
        }

    assert samples() == set()
    vote = Polling(place="dc1").vote(Sight.GONE, "", epoch=3, in_the_way="")
    collector.know({"a": vote}, Obstacle(cause=InTheWay.MINORITY, reason="1 of 3"))
    assert samples() == {
        ("a", "dc1", "gone"),
        ("b", "dc2", "missing"),
        ("c", "office", "missing"),
        ("minority",),
    }
    collector.know_nothing()
    assert samples() == set()
