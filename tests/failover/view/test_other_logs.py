"""Logs that went back, or were made again: what one site alone has is listed, whatever maps say."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from failover.sites.map_follower import MapFollower
from failover.sites.site import Site
from failover.view.divergence import Comparison
from failover.view.divergent_parts import Listed, Tally, UndecidedPart
from offset_translation.map_records import seal, source_topic, target_topic
from runtime.configuration.config import load
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.failover.target_batches import MIRROR, ORDERS, PIECE, tell, write
from tests.failover.two_sites import promotable
from wire.net import open_cluster

FORMER = UUID(int=77)


def hold(cluster: FakeCluster, batches: Mapping[str, int]) -> None:
    """Have orders-0 hold these batches, by their values their producer."""
    log, place = cluster.create_topic("orders", 0).partitions[0], 0
    for values, producer in batches.items():
        write(log, values, producer, sequence=place if producer == MIRROR else 0)
        place += len(values) if producer == MIRROR else 0


async def listed(
    folder: Path, dc1: FakeCluster, dc2: FakeCluster, *, active: str
) -> tuple[list[tuple[str, int]], str]:
    """Return what the idle site alone has, by site and offset, and what to do about it."""
    file = folder / "dc.yaml"
    hosts = [",".join(f"{host}:{port}" for host, port in one.bootstrap) for one in (dc1, dc2)]
    file.write_text(promotable(hosts[0], hosts[1], "w:1", "/r", "orders", is_both_ways=True))
    told: list[Any] = []
    async with (
        open_cluster(dc1.bootstrap, client_id="t") as first,
        open_cluster(dc2.bootstrap, client_id="t") as second,
    ):
        sites = [Site(name="dc1", cluster=first), Site(name="dc2", cluster=second)]
        here, there = sites if active == "dc1" else sites[::-1]
        from_idle = MapFollower(here, there.name, MemoryWriters())
        from_active = MapFollower(there, here.name, MemoryWriters())
        await from_idle.refresh()
        comparison = Comparison(
            active=here,
            idle=there,
            flows=load(file).flows,
            from_idle=from_idle,
            from_active=from_active,
            journals=(),
            tell=told.append,
            tally=Tally(),
        )
        await comparison._list_only_there()
    records = [(one.site, one.offset) for one in told if isinstance(one, Listed)]
    assert comparison.tally.pending == len(records)
    return records, " ".join(one.line() for one in told if isinstance(one, UndecidedPart))


@pytest.mark.parametrize("since", ["", "xy", "vwxyz"])
async def test_what_the_active_site_has_lost_is_listed_where_the_last_copy_lies(
    tmp_path: Path, since: str
) -> None:
    """dc1 was restored from an older disk, and has taken other records at the same offsets."""
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        hold(dc1, {"abcde": 8, since: 9} if since else {"abcde": 8})
        hold(dc2, {"abcd": MIRROR, "efgh": MIRROR})
        tell(dc2, PIECE)
        records, line = await listed(tmp_path, dc1, dc2, active="dc1")
    assert records == [("dc2", offset) for offset in (5, 6, 7)]
    assert "which came from dc1 and are gone there: `failover promote dc2 --source-lost" in line


@pytest.mark.parametrize(
    ("said", "first"), [((), 5), ((source_topic("orders", FORMER),), 0)], ids=["cut", "made again"]
)
async def test_what_an_idle_site_took_at_offsets_that_were_mirrored_is_listed(
    tmp_path: Path, said: tuple[tuple[bytes, bytes], ...], first: int
) -> None:
    """dc2 was promoted behind it. By its map, all of dc1 before offset 8 is on dc2."""
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        hold(dc1, {"abcde": 8, "vwxyz": 9})
        hold(dc2, {"abcdefgh": MIRROR, "own": 9})
        tell(dc2, PIECE, seal(*ORDERS, source_end=8, target_end=8), *said)
        records, line = await listed(tmp_path, dc1, dc2, active="dc2")
    assert records == [("dc1", offset) for offset in range(first, 10)]
    assert "delete the topic on dc1, and with every `mirror run` stopped `mirror refill" in line


async def test_what_was_mirrored_to_a_topic_that_was_made_again_counts_as_mirrored_no_more(
    tmp_path: Path,
) -> None:
    """The active site's topic has as many records as before, and they are others'."""
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        hold(dc1, {"abcdefgh": 8})
        hold(dc2, {"stuvwxyz": 9})
        said = (seal(*ORDERS, source_end=8, target_end=8), target_topic(*ORDERS, FORMER))
        tell(dc2, PIECE, *said)
        records, _ = await listed(tmp_path, dc1, dc2, active="dc2")
    assert records == [("dc1", offset) for offset in range(8)]


async def test_logs_that_are_as_the_map_says_have_nothing_alone(tmp_path: Path) -> None:
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        hold(dc1, {"abcdefgh": 8})
        hold(dc2, {"abcdefgh": MIRROR})
        tell(dc2, PIECE)
        assert await listed(tmp_path, dc1, dc2, active="dc1") == ([], "")


@pytest.mark.parametrize("source", ["abcde", "abcdefghij"])
async def test_copies_that_others_have_pushed_back_are_not_called_lost(
    tmp_path: Path, source: str
) -> None:
    """By the end of dc2's log more is mirrored than dc1 has, or other records are."""
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        hold(dc1, {source: 8})
        hold(dc2, {"abc": MIRROR, "xx": 9, "de": MIRROR})
        tell(dc2, PIECE)
        records, line = await listed(tmp_path, dc1, dc2, active="dc1")
    assert records == [("dc2", 3), ("dc2", 4)]
    assert "--quarantine" in line
    assert "gone there" not in line
