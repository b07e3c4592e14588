"""Which sites are to be closed is decided from the status alone."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import trio

import failover.serve.guard
import failover.serve.site_keeper
from failover.journal.journal import begin_step, end_step
from failover.journal.journals import JournalReader
from failover.journal.lease import Lease, LeaseLost
from failover.journal.steps import PromotionState, StepName, StepState
from failover.serve.guard import (
    Breach,
    MirrorShutOut,
    StrayFence,
    _fence,
    _lift,
    add_due_replicas,
    close_breach,
    find_breach,
    find_stray,
    find_wrong,
    look_for_another_file,
    why_not_to_lift,
)
from failover.serve.site_keeper import SiteKeeper
from failover.serve.status_collector import StatusCollector
from failover.view.status import Status, _read_sites
from runtime.configuration.config import Configuration, load
from runtime.configuration.coordination_section import CoordinationConfig
from runtime.configuration.flow_section import Policy
from runtime.configuration.running_flow import publish_running
from runtime.coordination.zookeeper import ZooKeeper
from runtime.pair.evidence import Agreed, Evidence, PairSeen, SiteSeen
from runtime.process.fault_note import FaultNote
from runtime.rights.closing import FenceNote, barring, closing, closings, noting
from tests.dc_yaml import dc_yaml, flow
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.fake_rights import FakeRights, everybodys
from tests.doubles.memory_nodes import MemoryNodes
from tests.failover.fencing import FencedCluster, fence_of_one_set
from tests.failover.plans import BACK, last_promotion, site
from tests.failover.sleeping import SleepyWitness
from tests.failover.two_sites import promotable
from wire.net import Cluster
from wire.net.errors import RequestTimedOut
from wire.net.rights import ALLOW, PREFIXED, READ


@pytest.fixture(autouse=True)
def _same_file_as_the_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look(*_: object) -> None:
        await trio.lowlevel.checkpoint()

    for module in (failover.serve.guard, failover.serve.site_keeper):
        monkeypatch.setattr(module, "look_for_another_file", look)


COORDINATION = CoordinationConfig(zookeeper="w:1", path="/r", session_timeout_ms=4_000)


def test_a_lost_site_that_is_back_is_to_be_closed() -> None:
    breach = Breach(site="dc1", active="dc2", topics=("a", "b"))
    assert find_breach(BACK) == breach
    assert find_breach(replace(BACK, sites=(site("dc1", "a"), site("dc2")))) == breach


def test_a_site_that_is_away_or_closed_is_left_alone() -> None:
    assert find_breach(replace(BACK, sites=(site("dc1", fault="refused"), site("dc2")))) is None
    assert find_breach(replace(BACK, sites=(site("dc1", "a", "b", "c"), site("dc2")))) is None


def test_nothing_is_closed_while_or_unless_a_promotion_says_so() -> None:
    running = replace(last_promotion(), epoch=2, state=PromotionState.RUNNING)
    assert find_wrong(replace(BACK, unfinished=running)) is None
    assert find_breach(replace(BACK, switched=None)) is None


def test_a_topic_made_on_the_idle_site_since_is_to_be_closed_with_the_others() -> None:
    idle = replace(site("dc1", "a", "b"), open_topics=("new",))
    found = find_wrong(replace(BACK, sites=(idle, site("dc2"))))
    assert found == Breach(site="dc1", active="dc2", topics=("a", "b", "new"))


def test_a_standby_is_to_be_closed_before_any_promotion() -> None:
    standby = replace(site("dc1"), open_topics=("orders",))
    found = find_wrong(replace(BACK, switched=None, sites=(standby, site("dc2"))))
    assert found == Breach(site="dc1", active="dc2", topics=("orders",), is_first=True)


def test_a_promotion_that_died_behind_its_switch_keeps_no_site_open() -> None:
    """All that it has to do yet is to let the flow back run."""
    journal = begin_step(last_promotion(), StepName.SWITCH, 0)
    journal = end_step(journal, StepName.SWITCH, state=StepState.DONE, facts={}, now_ms=0)
    journal = replace(journal, state=PromotionState.RUNNING)
    found = find_wrong(replace(BACK, unfinished=journal, switched=journal))
    assert found == Breach(site="dc1", active="dc2", topics=("a", "b"))


def test_a_fence_set_late_on_the_active_site_is_lifted_if_it_is_ours() -> None:
    late = replace(site("dc2", "a"), allowed_clients=("mirror-dc1-dc2",))
    closed = (site("dc1", "a", "b"), late)
    assert find_wrong(replace(BACK, sites=closed)) == StrayFence(site="dc2", topics=("a",))
    somebodys = replace(late, allowed_clients=("maintenance",))
    assert find_stray(replace(BACK, sites=(site("dc1"), somebodys))) is None
    assert find_stray(replace(BACK, sites=(replace(late, is_active=False), site("dc2")))) is None


def test_what_keeps_topics_from_being_made_is_lifted_with_a_fence_and_without_one() -> None:
    late = replace(site("dc2"), allowed_clients=("mirror-dc1-dc2",), denied_creation=("orders*",))
    closed = (site("dc1", "a", "b"), late)
    assert find_wrong(replace(BACK, sites=closed)) == StrayFence(site="dc2", topics=())


@pytest.mark.parametrize(
    ("denied", "due", "is_wrong", "is_wrong_behind_the_switch"),
    [
        (("orders*",), ("orders*",), False, False),
        ((), (), False, False),
        ((), ("orders*",), True, True),
        (("orders*", "the cluster"), ("orders*",), True, False),
        (("*", "orders*"), ("orders*",), True, False),
        (("orders*", "sales*"), ("orders*",), False, False),
    ],
)
def test_a_closed_site_keeps_topics_from_being_made_as_long_as_it_is_due(
    denied: tuple[str, ...],
    due: tuple[str, ...],
    is_wrong: bool,
    is_wrong_behind_the_switch: bool,
) -> None:
    """A promotion that has not looked behind its switch yet denies more, and takes that back."""
    idle = replace(
        site("dc1", "a", "b"),
        allowed_clients=("mirror-dc2-dc1",),
        denied_creation=denied,
        due_creation=due,
    )
    quiet = replace(BACK, sites=(idle, site("dc2")))
    breach = Breach(site="dc1", active="dc2", topics=("a", "b"))
    assert find_wrong(quiet) == (breach if is_wrong else None)
    switching = replace(last_promotion(), state=PromotionState.RUNNING)
    switching = end_step(
        begin_step(switching, StepName.SWITCH, 0),
        StepName.SWITCH,
        state=StepState.DONE,
        facts={},
        now_ms=0,
    )
    under_way = replace(quiet, unfinished=switching)
    assert find_wrong(under_way) == (breach if is_wrong_behind_the_switch else None)


async def test_a_standby_keeps_topics_from_being_made_from_the_first_start_on(
    tmp_path: Path,
) -> None:
    """CREATE on the cluster makes topics all the same, as no promotion is under way.

    What an earlier file has closed stays so until the site is opened.
    """
    async with run_fake_cluster() as cluster:
        cluster.create_topic("orders", 0)
        readable = everybodys(["orders"], READ, ALLOW)
        earlier = barring("sales", pattern=PREFIXED)
        noted = noting(earlier, FenceNote(client="mirror-dc2-dc1"))
        rights = FakeRights(cluster, *readable, earlier, noted)
        file = tmp_path / "dc.yaml"
        [(host, port)] = cluster.bootstrap
        at = f"{host}:{port}"
        file.write_text(
            promotable(dc1=at, dc2=at, witness="w:1", path="/r", topics=["orders.*", "[a-c]"])
        )
        configuration, lease = load(file), SleepyWitness().lease()
        shared = fence_of_one_set(configuration)
        before, _ = await _read_sites(configuration, "dc2")
        assert before.denied_creation == ("sales*",)
        assert before.due_creation == ("orders*",)
        status = replace(BACK, switched=None, sites=(before, site("dc2")))
        breach = find_wrong(status)
        assert breach == Breach(site="dc1", active="dc2", topics=("orders",), is_first=True)
        assert isinstance(breach, Breach)
        await lease.act(lambda: _fence(shared, replace(breach, is_first=False), lease))
        bar = barring("orders", pattern=PREFIXED)
        assert closings(rights.rights).keys() == {closing("orders"), bar, earlier}
        after, _ = await _read_sites(configuration, "dc2")
        assert find_wrong(replace(status, sites=(after, site("dc2")))) is None
        stray = StrayFence(site="dc1", topics=("orders",))
        await lease.act(lambda: _lift(shared, stray, lease))
        assert rights.rights == readable


def test_an_idle_site_that_is_written_to_is_not_closed() -> None:
    idle = replace(site("dc1"), is_written_to=True)
    both = replace(BACK, sites=(idle, site("dc2")))
    assert find_wrong(both) is None
    assert find_wrong(both, read_in=1) is None


def test_a_promotions_fence_is_lifted_once_both_sites_are_written_to() -> None:
    closed = replace(site("dc1", "a", "b"), allowed_clients=("mirror-dc2-dc1",))
    assert find_wrong(replace(BACK, sites=(closed, site("dc2")))) is None
    open_again = replace(closed, is_written_to=True)
    found = find_wrong(replace(BACK, sites=(open_again, site("dc2"))), read_in=1)
    assert found == StrayFence(site="dc1", topics=("a", "b"))
    somebodys = replace(open_again, allowed_clients=("maintenance",))
    assert find_wrong(replace(BACK, sites=(somebodys, site("dc2")))) is None


def test_a_promotion_since_the_configuration_was_read_tells_that_it_is_old() -> None:
    """It was refused while both sites were written to: somebody has taken that out since."""
    idle = replace(site("dc1"), is_written_to=True)
    found = find_wrong(replace(BACK, sites=(idle, site("dc2"))), read_in=0)
    assert found == Breach(site="dc1", active="dc2", topics=("a", "b"))
    closed = replace(idle, fenced_topics=("a", "b"), allowed_clients=("mirror-dc2-dc1",))
    assert find_wrong(replace(BACK, sites=(closed, site("dc2"))), read_in=0) is None


def test_a_file_that_differs_from_the_mirrors_opens_no_site() -> None:
    """Yesterday's may say that applications write to both, and be read behind the promotion."""
    idle = replace(site("dc1"), is_written_to=True)
    closed = replace(idle, fenced_topics=("a", "b"), allowed_clients=("mirror-dc2-dc1",))
    for one, wrong in ((idle, Breach(site="dc1", active="dc2", topics=("a", "b"))), (closed, None)):
        status = replace(BACK, sites=(one, site("dc2")))
        assert find_wrong(status, read_in=1, opens_more=True) == wrong


async def test_what_a_file_has_otherwise_than_the_mirror_is_named(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(promotable(dc1="a:1", dc2="b:1", witness="w:1", path="/r", topics="orders"))
    configuration = load(file)
    [flow] = configuration.flows
    nodes = MemoryNodes()
    zookeeper, paths = cast("ZooKeeper", nodes), configuration.coordination.paths
    assert await look_for_another_file(configuration, zookeeper) is None, "no mirror has ever run"
    for mirrors, opens_more in (
        (flow, False),
        (replace(flow, policies={"source_gone": Policy.STOP}), False),
        (replace(flow, is_active_active=True), False),
    ):
        await publish_running(zookeeper, paths, mirrors)
        other = await look_for_another_file(configuration, zookeeper)
        assert (other is None) == (mirrors == flow)
        assert other is None or other.opens_more is opens_more
    assert other is not None
    assert "active_active: the mirror runs true, the file has false" in other.why
    both = replace(configuration, flows=(replace(flow, is_active_active=True),))
    await publish_running(zookeeper, paths, flow)
    other = await look_for_another_file(both, zookeeper)
    assert other is not None
    assert other.opens_more
    nodes.nodes[paths.running(flow.source, flow.target)] = (b"garbled", 0)
    other = await look_for_another_file(both, zookeeper)
    assert other is not None
    assert other.why.startswith("what the mirror of dc1->dc2 runs is not known: ")


@pytest.mark.parametrize("both", [True, False])
async def test_an_idle_site_is_written_to_while_its_flow_to_the_active_one_says_so(
    tmp_path: Path, both: bool
) -> None:
    async with run_fake_cluster() as cluster:
        FencedCluster(cluster).serve()
        [(host, port)] = cluster.bootstrap
        address = f"{host}:{port}"
        file = tmp_path / "dc.yaml"
        ways = [flow(*way, active_active=both) for way in (("dc1", "dc2"), ("dc2", "dc1"))]
        initial = {"initial_active": "dc1"}
        file.write_text(dc_yaml(*ways, dc1=address, dc2=address, failover=initial))
        sites = await _read_sites(load(file), "dc2")
        assert {one.name: one.is_written_to for one in sites} == {"dc1": both, "dc2": False}


async def test_a_stray_fence_is_lifted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_fake_cluster() as cluster:
        fenced = FencedCluster(cluster, topics=("a",))
        fenced.serve()
        file = tmp_path / "dc.yaml"
        [(host, port)] = cluster.bootstrap
        address = f"{host}:{port}"
        file.write_text(promotable(dc1="a:1", dc2=address, witness="w:1", path="/r", topics=".*"))
        late = replace(site("dc2", "a"), allowed_clients=("mirror-dc1-dc2",))
        witness = SleepyWitness()

        @asynccontextmanager
        async def hold_lease(*_: object, **__: object) -> AsyncIterator[Lease]:
            yield witness.lease()

        async def read_status(*_: object) -> Status:
            return replace(BACK, sites=(site("dc1", "a", "b"), late))

        monkeypatch.setattr(failover.serve.guard, "hold_lease", hold_lease)
        monkeypatch.setattr(failover.serve.guard, "read_status", read_status)
        monkeypatch.setattr(failover.serve.guard, "require_pair", require_pair)
        await close_breach(load(file), cast("ZooKeeper", None), {}, FaultNote("fences"))
        assert fenced.topics == ()


async def require_pair(*_: object) -> PairSeen:
    """Say that nothing contradicts the witness."""
    return pair_seen(dc2=SiteSeen(evidence=EVIDENCE))


EVIDENCE = Evidence(path="/r", pair="p", clusters={}, active="dc2", epoch=1)
SILENT = SiteSeen(fault="no answer within 3 s")


def pair_seen(**sites: SiteSeen) -> PairSeen:
    return PairSeen(
        path="/r", initial_active="dc1", active=BACK.active, pair=None, journals=(), sites=sites
    )


def test_a_fence_is_lifted_by_who_knows_of_a_later_epoch_than_its_own() -> None:
    """The fenced site carries the epoch of its fence, and the witness is no older than that."""
    told = SiteSeen(evidence=EVIDENCE)
    assert why_not_to_lift(pair_seen(dc1=SILENT, dc2=told), "dc2") is None
    assert why_not_to_lift(pair_seen(dc1=SiteSeen(), dc2=SiteSeen()), "dc2") is None
    for sites in ({"dc1": SILENT, "dc2": SiteSeen()}, {"dc1": told, "dc2": SILENT}, {}):
        why = why_not_to_lift(pair_seen(**sites), "dc2")
        assert why is not None
        assert why.startswith("the fence on dc2 stays: dc2 carries no evidence of when it was")


async def test_a_stray_fence_stays_while_the_only_site_that_may_know_better_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing_known(*_: object) -> PairSeen:
        return pair_seen(dc1=SILENT, dc2=SiteSeen())

    late = replace(site("dc2", "a"), allowed_clients=("mirror-dc1-dc2",))
    status = replace(BACK, sites=(site("dc1", "a", "b"), late))
    assert await acted_on(monkeypatch, status, nothing_known) == []
    assert await acted_on(monkeypatch, status, require_pair) == ["lifted"]


async def test_a_site_carries_evidence_of_the_epoch_before_it_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await acted_on(monkeypatch, BACK, require_pair) == ["evidence on dc1", "closed"]


async def acted_on(
    monkeypatch: pytest.MonkeyPatch, status: Status, look: Callable[..., Awaitable[PairSeen]]
) -> list[str]:
    """What the guard does about this status, in order."""
    done: list[str] = []

    @asynccontextmanager
    async def hold_lease(*_: object, **__: object) -> AsyncIterator[Lease]:
        yield SleepyWitness().lease()

    async def read_status(*_: object) -> Status:
        return status

    async def renew(*arguments: object) -> dict[str, str]:
        [named] = cast("list[str]", arguments[-1])
        done.append(f"evidence on {named}")
        return {}

    async def close(*_: object) -> None:
        done.append("closed")

    async def lift(*_: object) -> None:
        done.append("lifted")

    monkeypatch.setattr(failover.serve.guard, "hold_lease", hold_lease)
    monkeypatch.setattr(failover.serve.guard, "read_status", read_status)
    monkeypatch.setattr(failover.serve.guard, "require_pair", look)
    monkeypatch.setattr(failover.serve.guard, "renew_evidence", renew)
    monkeypatch.setattr(failover.serve.guard, "_fence", close)
    monkeypatch.setattr(failover.serve.guard, "_lift", lift)
    configuration = SimpleNamespace(coordination=COORDINATION)
    await close_breach(
        cast("Configuration", configuration), cast("ZooKeeper", None), {}, FaultNote("fences")
    )
    return done


async def test_a_session_lost_while_a_site_is_closed_is_left_to_the_next_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[str] = []

    class Lost:
        async def act(self, _: Callable[[], Awaitable[None]]) -> None:
            begun.append("to close it")
            raise LeaseLost("the session with the witness was lost")

    @asynccontextmanager
    async def hold_lease(*_: object, **__: object) -> AsyncIterator[Lost]:
        yield Lost()

    async def read_status(*_: object) -> Status:
        return BACK

    monkeypatch.setattr(failover.serve.guard, "hold_lease", hold_lease)
    monkeypatch.setattr(failover.serve.guard, "read_status", read_status)
    monkeypatch.setattr(failover.serve.guard, "require_pair", require_pair)
    configuration = SimpleNamespace(coordination=COORDINATION)
    await close_breach(
        cast("Configuration", configuration), cast("ZooKeeper", None), {}, FaultNote("fences")
    )
    assert begun == ["to close it"]


def test_a_third_site_lets_the_mirror_of_the_new_active_site_through() -> None:
    third = replace(site("dc3", "a", "b"), allowed_clients=("mirror-dc1-dc3",))
    old = replace(site("dc1", "a", "b"), allowed_clients=("mirror-dc2-dc1",))
    found = find_wrong(replace(BACK, sites=(old, site("dc2"), third)))
    assert found == Breach(site="dc3", active="dc2", topics=("a", "b"), is_first=True)
    right = replace(third, allowed_clients=("mirror-dc2-dc3",))
    assert find_wrong(replace(BACK, sites=(old, site("dc2"), right))) is None
    somebodys = replace(third, allowed_clients=("maintenance",))
    assert find_wrong(replace(BACK, sites=(old, site("dc2"), somebodys))) is None


async def test_a_standby_whose_readers_a_right_would_shut_out_is_not_closed(
    tmp_path: Path,
) -> None:
    """No right concerns the topic, so that the first one would take it from all."""
    async with run_fake_cluster() as cluster:
        cluster.create_topic("orders", 0)
        rights = FakeRights(cluster)
        rights.settings = {"allow.everyone.if.no.acl.found": "true"}
        [(host, port)] = cluster.bootstrap
        file = tmp_path / "dc.yaml"
        address = f"{host}:{port}"
        file.write_text(promotable(dc1="a:1", dc2=address, witness="w:1", path="/r", topics=".*"))
        breach = Breach(site="dc2", active="dc1", topics=("orders",), is_first=True)
        lease = SleepyWitness().lease()
        with pytest.raises(MirrorShutOut, match="would shut readers out"):
            await lease.act(lambda: _fence(fence_of_one_set(load(file)), breach, lease))
        assert rights.log == []


async def test_what_cannot_be_closed_keeps_nothing_else_from_being_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    standby = Breach(site="dc2", active="dc1", topics=("a",), is_first=True)
    old = Breach(site="dc1", active="dc2", topics=("a",))
    due = [standby, standby, old]
    tried: list[Breach] = []

    async def read_status(*_: object) -> Status:
        return BACK

    async def close(*_: object, **__: object) -> bool:
        tried.append(due[0])
        return False

    monkeypatch.setattr(failover.serve.site_keeper, "require_pair", require_pair)
    monkeypatch.setattr(failover.serve.site_keeper, "read_status", read_status)
    monkeypatch.setattr(failover.serve.site_keeper, "judge", lambda _: Agreed())
    monkeypatch.setattr(failover.serve.site_keeper, "close_breach", close)
    monkeypatch.setattr(failover.serve.site_keeper, "find_wrong", lambda *_, **__: due[0])
    configuration = SimpleNamespace(failover=SimpleNamespace(orphan_after_ms=1))
    follower = SiteKeeper(cast("Configuration", configuration), StatusCollector())
    while due:
        await follower._look(cast("ZooKeeper", None), {}, cast("JournalReader", None))
        due.pop(0)
    assert tried == [standby, old]


async def test_the_evidence_gets_replicas_under_the_lease_and_a_refusal_is_noted_by_site(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []

    @asynccontextmanager
    async def hold_lease(*_: object, **__: object) -> AsyncIterator[Lease]:
        yield SleepyWitness().lease()

    async def add(cluster: object) -> tuple[int, ...]:
        asked.append(cluster)
        await trio.lowlevel.checkpoint()
        if cluster == "second":
            raise RequestTimedOut("gone")
        return (1,)

    monkeypatch.setattr(failover.serve.guard, "hold_lease", hold_lease)
    monkeypatch.setattr(failover.serve.guard, "add_replicas", add)
    configuration = SimpleNamespace(coordination=COORDINATION)
    clusters = {"dc1": "first", "dc2": "second"}
    trouble, noted = FaultNote("replicas"), []
    for sites in (["dc1", "dc2"], ["dc1"]):
        await add_due_replicas(
            cast("Configuration", configuration),
            cast("ZooKeeper", None),
            cast("dict[str, Cluster]", clusters),
            sites,
            trouble,
        )
        noted.append(trouble.text)
    assert asked == ["first", "second", "first"]
    assert noted == ["dc2: gone", None]
