"""The fence that sets of topics share: each step changes one set's part, and no other's."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from failover.sites.fence import Fence, fence_of
from failover.sites.shared_fence import FenceStanding, SharedFence, SiteParts, standing_at
from failover.sites.site import Site, SiteUnclear
from runtime.configuration.config import Configuration
from runtime.configuration.topic_sets import TopicSets
from runtime.coordination.witness import ActiveSite
from runtime.coordination.zookeeper import ZNode, ZooKeeper
from runtime.rights.closing import barring, closing, closings
from runtime.rights.creation import OF_CLUSTER, OF_MOVING
from runtime.topic_patterns import decode_patterns
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.fake_rights import FakeRights, everybodys
from tests.failover.fencing import FencedCluster
from tests.with_sets import SETS, having, with_sets
from wire.net import open_cluster
from wire.net.rights import ALLOW, PREFIXED, READ

SITES: Final = "dc1", "dc2"
TOPICS: Final = "orders", "pay.in", "pay.out", "stock", "stockings"
ALL: Final = barring("*")
OF_PAYMENTS: Final = barring("pay.", pattern=PREFIXED)
OF_STOCK: Final = barring("stock")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Configuration:
    """Read a file with the sets payments and stock."""
    return with_sets(tmp_path_factory.mktemp("sets"))


def other(site: str) -> str:
    return "dc2" if site == "dc1" else "dc1"


def active(site: str, moving_to: str | None = None) -> ActiveSite:
    return ActiveSite(site=site, epoch=1, moving_to=moving_to)


def parts(
    whole: Configuration, name: str, site: str, actives: Mapping[str, ActiveSite]
) -> SiteParts:
    others = {one: active for one, active in actives.items() if one != name}
    return SiteParts(configuration=whole.of_set(name), site=site, actives=others)


def own_fence(whole: Configuration, name: str, site: str, *, is_moving: bool = False) -> Fence:
    [flow] = [flow for flow in whole.of_set(name).flows if flow.source == site]
    topics = [topic for topic in TOPICS if flow.moves(topic)]
    return fence_of(flow, site, topics, f"mirror-{other(site)}-{site}", is_moving=is_moving)


def test_what_another_set_has_closed_stays_closed_when_one_is_opened(whole: Configuration) -> None:
    actives = {"default": active("dc1"), "payments": active("dc2"), "stock": active("dc1")}
    of_stock = parts(whole, "stock", "dc1", actives)
    now = of_stock.joined(own_fence(whole, "stock", "dc1"), Fence(), TOPICS)
    assert now.topics == ("pay.in", "pay.out", "stock")
    assert now.bars == {OF_PAYMENTS, OF_STOCK}
    opened = of_stock.joined(Fence(), now, TOPICS)
    assert opened.topics == ("pay.in", "pay.out")
    assert opened.allowed_clients == ("mirror-dc2-dc1",)
    assert opened.bars == {OF_PAYMENTS}
    assert of_stock.own_part(opened).topics == ()
    assert of_stock.own_part(opened).bars == frozenset()


def test_what_closes_all_names_is_left_out_where_it_would_shut_out_an_open_set(
    whole: Configuration,
) -> None:
    actives = {"default": active("dc1"), "payments": active("dc2"), "stock": active("dc1")}
    default = parts(whole, "default", "dc2", actives)
    fence = default.joined(own_fence(whole, "default", "dc2"), Fence(), TOPICS)
    assert fence.bars == {OF_STOCK}
    assert default.lasting_bars(fence) == frozenset()
    everywhere = {name: active("dc1") for name in SETS.names}
    default = parts(whole, "default", "dc2", everywhere)
    fence = default.joined(own_fence(whole, "default", "dc2"), fence, TOPICS)
    assert fence.bars == {ALL, OF_PAYMENTS, OF_STOCK}
    assert default.lasting_bars(fence) == {ALL}


def test_a_bar_that_shuts_out_a_set_which_has_been_opened_goes_with_its_own_part(
    whole: Configuration,
) -> None:
    actives = {"default": active("dc1"), "payments": active("dc1"), "stock": active("dc1")}
    payments = parts(whole, "payments", "dc2", actives)
    closed = Fence(topics=("orders",), bars=frozenset({ALL, OF_PAYMENTS, OF_STOCK}))
    assert payments.joined(Fence(), closed, TOPICS).bars == {OF_STOCK}


def test_a_promotion_under_way_keeps_all_topics_from_being_made(whole: Configuration) -> None:
    actives = {"default": active("dc1"), "payments": active("dc1"), "stock": active("dc1")}
    payments = parts(whole, "payments", "dc1", actives)
    moving = payments.joined(own_fence(whole, "payments", "dc1", is_moving=True), Fence(), TOPICS)
    assert moving.bars == {OF_PAYMENTS, *OF_MOVING}
    actives = {**actives, "payments": active("dc1", moving_to="dc2")}
    stock = parts(whole, "stock", "dc1", actives)
    assert stock.own_part(moving).bars == frozenset()
    kept = stock.joined(Fence(), moving, TOPICS)
    assert (kept.topics, kept.bars) == (moving.topics, moving.bars)


def test_a_topic_that_was_closed_and_is_gone_stays_in_the_fence(whole: Configuration) -> None:
    actives = {"default": active("dc1"), "payments": active("dc2"), "stock": active("dc1")}
    now = Fence(topics=("pay.gone",))
    fence = parts(whole, "stock", "dc1", actives).joined(Fence(), now, TOPICS)
    assert fence.topics == ("pay.gone", "pay.in", "pay.out")


def test_without_sets_a_fence_is_what_the_step_says(whole: Configuration) -> None:
    alone = having(whole, TopicSets())
    own = own_fence(whole, "payments", "dc1")
    without = SiteParts(configuration=alone, site="dc1", actives={})
    assert without.joined(own, Fence(topics=("x",)), TOPICS) is own
    assert without.own_part(Fence(topics=("x",))) == Fence(topics=("x",))


@pytest.mark.parametrize(
    ("where", "moving_to", "standing"),
    [
        ("dc1", None, (FenceStanding.OPEN, FenceStanding.CLOSED)),
        ("dc2", None, (FenceStanding.CLOSED, FenceStanding.OPEN)),
        ("dc1", "dc2", (FenceStanding.MOVING, FenceStanding.MOVING)),
    ],
)
def test_a_set_under_promotion_is_left_as_it_is(
    where: str, moving_to: str | None, standing: tuple[FenceStanding, FenceStanding]
) -> None:
    seen = active(where, moving_to)
    assert (standing_at(seen, "dc1"), standing_at(seen, "dc2")) == standing


@dataclass(slots=True)
class ActiveSites:
    """A witness that says which site is active for each set."""

    nodes: dict[str, ActiveSite]
    syncs: int = 0

    async def sync(self) -> None:
        self.syncs += 1

    async def get(self, path: str) -> ZNode | None:
        if path not in self.nodes:
            return None
        data = self.nodes[path].encode()
        return ZNode(data=data, version=0, created_zxid=1, modified_zxid=1, ephemeral_owner=0)


def witness_of(whole: Configuration, **sites: str) -> ActiveSites:
    return ActiveSites(
        {whole.of_set(name).coordination.paths.active: active(at) for name, at in sites.items()}
    )


def fences_of(whole: Configuration, name: str, witness: ActiveSites) -> SharedFence:
    return SharedFence(configuration=whole.of_set(name), zookeeper=cast("ZooKeeper", witness))


async def test_a_bundled_site_is_closed_for_one_set_and_opened_again_beside_another(
    whole: Configuration,
) -> None:
    witness = witness_of(whole, default="dc1", payments="dc2", stock="dc1")
    stock = fences_of(whole, "stock", witness)
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        fenced = FencedCluster(fake)
        fenced.serve()
        for topic in TOPICS:
            fake.create_topic(topic, 0)
        site = Site(name="dc1", cluster=cluster)
        await stock.set_part(site, own_fence(whole, "stock", "dc1"))
        assert [*fenced.topics] == ["pay.in", "pay.out", "stock"]
        assert (await stock.read_part(site)).topics == ("stock",)
        await stock.set_part(site, Fence())
        assert [*fenced.topics] == ["pay.in", "pay.out"]
        assert witness.syncs == 3


async def test_a_site_is_closed_by_rights_for_one_set_and_opened_again_beside_another(
    whole: Configuration,
) -> None:
    witness = witness_of(whole, default="dc1", payments="dc2", stock="dc1")
    stock = fences_of(whole, "stock", witness)
    readable = everybodys(TOPICS, READ, ALLOW)
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        rights = FakeRights(fake, *readable)
        for topic in TOPICS:
            fake.create_topic(topic, 0)
        site = Site(name="dc1", cluster=cluster)
        await stock.set_part(site, own_fence(whole, "stock", "dc1"))
        of_payments = {closing("pay.in"), closing("pay.out"), OF_PAYMENTS}
        assert closings(rights.rights).keys() == {*of_payments, closing("stock"), OF_STOCK}
        await stock.set_part(site, Fence())
        assert closings(rights.rights).keys() == of_payments
        everywhere = witness_of(whole, default="dc1", payments="dc1", stock="dc1")
        await fences_of(whole, "payments", everywhere).set_part(site, Fence())
        assert rights.rights == set(readable)


async def test_nothing_is_opened_where_the_witness_does_not_say_what_others_have_closed(
    whole: Configuration,
) -> None:
    witness = witness_of(whole, default="dc1", stock="dc1")
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        fenced = FencedCluster(fake, topics=("pay.in", "stock"))
        fenced.serve()
        site = Site(name="dc1", cluster=cluster)
        with pytest.raises(SiteUnclear, match="nothing says which site is active for payments"):
            await fences_of(whole, "stock", witness).set_part(site, Fence())
        assert fenced.times_set == 0


STEPS: Final = "announce", "fence", "open-target", "switch", "confirm"


@dataclass(slots=True, kw_only=True)
class World:
    """Two sites' fences and the witness, and what each set's steps have closed so far."""

    whole: Configuration
    fences: dict[str, Fence] = field(default_factory=lambda: dict.fromkeys(SITES, Fence()))
    actives: dict[str, ActiveSite] = field(
        default_factory=lambda: dict.fromkeys(SETS.names, active("dc1"))
    )
    closed: set[tuple[str, str]] = field(default_factory=set)
    done: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in SETS.names})
    """The steps of each set's promotion; none between two."""

    def go_on(self, name: str) -> None:
        """Do the next step of a set's promotion."""
        source = self.actives[name].site
        step = STEPS[len(self.done[name])]
        self.done[name].append(step)
        match step:
            case "announce":
                self.actives[name] = active(source, moving_to=other(source))
            case "fence":
                self.close(name, source, is_moving=True)
            case "open-target":
                self.open(name, other(source))
            case "switch":
                self.actives[name] = active(other(source))
            case _:
                self.close(name, other(source))
                self.done[name].clear()

    def take_back(self, name: str) -> None:
        """Take the promotion of a set back, unless it has switched."""
        if "switch" in self.done[name]:
            return
        source = self.actives[name].site
        while self.done[name]:
            match self.done[name].pop():
                case "open-target":
                    self.close(name, other(source))
                case "fence":
                    self.open(name, source)
                case _:
                    self.actives[name] = active(source)

    def guard(self, name: str, site: str) -> None:
        """Do what `failover serve` does for a set that nobody promotes."""
        if self.done[name]:
            return
        if self.actives[name].site == site:
            self.open(name, site)
        else:
            self.close(name, site)

    def close(self, name: str, site: str, *, is_moving: bool = False) -> None:
        self._set(name, site, own_fence(self.whole, name, site, is_moving=is_moving))
        self.closed.add((name, site))

    def open(self, name: str, site: str) -> None:
        self._set(name, site, Fence())
        self.closed.discard((name, site))

    def _set(self, name: str, site: str, own: Fence) -> None:
        of_set = parts(self.whole, name, site, self.actives)
        self.fences[site] = of_set.joined(own, self.fences[site], TOPICS)

    def check(self) -> None:
        """The fence of each site closes what the sets' steps have closed, and nothing else."""
        for site in SITES:
            fence = self.fences[site]
            due = {name for name, where in self.closed if where == site}
            assert set(fence.topics) == self.topics_of(due)
            if fence.topics:
                patterns = decode_patterns(fence.patterns)
                names = {*TOPICS, "pay.new", "new", "stock.new"}
                assert set(filter(patterns.matches, names)) == self.topics_of(due, names)
                assert fence.allowed_clients == (f"mirror-{other(site)}-{site}",)
            wanted = {OF_PAYMENTS: "payments", OF_STOCK: "stock"}
            assert {bar for bar in wanted if bar in fence.bars} == {
                bar for bar, name in wanted.items() if name in due
            }
            if OF_CLUSTER not in fence.bars:
                assert (ALL in fence.bars) == (due == set(SETS.names))

    def topics_of(self, names: Iterable[str], topics: Iterable[str] = TOPICS) -> set[str]:
        return {topic for topic in topics if SETS.set_of(topic) in names}


ACTIONS: Final = st.lists(
    st.tuples(
        st.sampled_from(SETS.names),
        st.sampled_from(("go on", "go on", "go on", "take back", "guard dc1", "guard dc2")),
    ),
    max_size=40,
)


@given(ACTIONS)
@example([("payments", "go on")] * 5 + [("default", "go on")] * 3 + [("default", "take back")])
@example([("default", "go on")] * 2 + [("stock", "go on")] * 5 + [("default", "go on")] * 3)
def test_a_site_is_closed_for_the_topics_of_just_those_sets_that_closed_it(
    whole: Configuration, actions: list[tuple[str, str]]
) -> None:
    world = World(whole=whole)
    for name in SETS.names:
        world.guard(name, "dc2")
    world.check()
    for name, action in actions:
        match action.split():
            case ["go", _]:
                world.go_on(name)
            case ["take", _]:
                world.take_back(name)
            case _:
                world.guard(name, action.removeprefix("guard "))
        world.check()
