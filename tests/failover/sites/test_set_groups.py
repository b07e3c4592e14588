"""The groups of a set of topics on a site."""

from pathlib import Path

import pytest

from failover.sites.set_groups import cut_line, groups_of_set
from failover.sites.site import Site
from runtime.configuration.topic_sets import NO_SETS
from tests.doubles.fake_cluster import run_fake_cluster
from tests.with_sets import with_sets
from wire.net import open_cluster

POSITIONS = {
    "pays": {("pay.in", 0)},
    "orders": {("orders", 0), ("_not.moved.internal", 0)},
    "both": {("orders", 0), ("pay.out", 1)},
    "stock-and-orders": {("orders", 0), ("stock", 0)},
    "none": set(),
}


@pytest.mark.parametrize(
    ("name", "chosen", "cut"),
    [
        ("payments", ["pays"], ["both"]),
        ("default", ["orders"], ["both", "stock-and-orders"]),
        ("stock", [], ["stock-and-orders"]),
    ],
)
async def test_a_group_is_of_the_set_in_whose_topics_it_has_positions(
    tmp_path: Path, name: str, chosen: list[str], cut: list[str]
) -> None:
    of_set = with_sets(tmp_path).of_set(name)
    async with run_fake_cluster() as fake:
        for group, stored in POSITIONS.items():
            fake.offsets[group] = dict.fromkeys(stored, 3)
        async with open_cluster(fake.bootstrap, client_id="failover") as opened:
            site = Site(name="dc1", cluster=opened)
            found = await groups_of_set(site, of_set, of_set.flows[0])
            assert [*await site.members(found.chosen)] == chosen
    assert [group for group in POSITIONS if found.chosen.matches(group)] == chosen
    assert [one.group for one in found.cut] == cut
    assert cut_line(found.cut).startswith(f"group {cut[0]} reads ")
    assert ("(and 1 groups more)" in cut_line(found.cut)) == (len(cut) == 2)


async def test_without_sets_all_groups_of_the_flow_move(tmp_path: Path) -> None:
    whole = with_sets(tmp_path, NO_SETS)
    async with (
        run_fake_cluster() as fake,
        open_cluster(fake.bootstrap, client_id="failover") as opened,
    ):
        found = await groups_of_set(Site(name="dc1", cluster=opened), whole, whole.flows[0])
        assert not fake.brokers[0].asked
    assert (found.chosen, found.cut) == (whole.flows[0].groups, ())
