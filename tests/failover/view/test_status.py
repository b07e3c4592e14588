"""What is seen of the sites: what they have closed, and what an idle one has not."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import failover.view.status
from failover.sites.fence import Fence
from failover.view.status import (
    ShownNames,
    SiteStatus,
    Status,
    _read_sites,
    status_document,
    status_lines,
)
from runtime.configuration.config import load
from runtime.coordination.witness import ActiveSite
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.fake_rights import FakeRights
from tests.failover.fencing import FencedCluster
from tests.failover.plans import BACK
from tests.failover.two_sites import promotable
from wire.errors import ErrorCode


async def test_the_open_topics_of_an_idle_site_are_those_that_a_flow_takes_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read_fence(_: Any) -> Fence:
        return Fence(topics=("o-closed",), allowed_clients=())

    monkeypatch.setattr(failover.view.status, "read_fence", read_fence)
    async with run_fake_cluster() as cluster:
        FencedCluster(cluster).serve()
        for name in ("o-closed", "o-new", "another"):
            cluster.create_topic(name, 0)
        [(host, port)] = cluster.bootstrap
        address, file = f"{host}:{port}", tmp_path / "dc.yaml"
        file.write_text(
            promotable(dc1=address, dc2=address, witness="w:1", path="/r", topics="o-.*")
        )
        for active, found in (("dc2", ("o-new",)), ("dc1", ())):
            dc1, _ = await _read_sites(load(file), active)
            assert (dc1.fault, dc1.open_topics) == (None, found)


async def test_an_idle_site_that_cannot_be_closed_says_why(tmp_path: Path) -> None:
    async with run_fake_cluster() as cluster:
        rights = FakeRights(cluster)
        rights.error = ErrorCode.SECURITY_DISABLED
        cluster.create_topic("orders", 0)
        [(host, port)] = cluster.bootstrap
        address, file = f"{host}:{port}", tmp_path / "dc.yaml"
        file.write_text(
            promotable(dc1=address, dc2=address, witness="w:1", path="/r", topics="orders")
        )
        sites = await _read_sites(load(file), "dc2")
    standby, active = list(status_lines(replace(BACK, sites=sites)))[1:3]
    assert active == "site     dc2: active, not fenced"
    assert standby == (
        "site     dc1: standby, not fenced; open: orders; cannot be closed: it has no write fence,"
        " and no authorizer"
    )


@pytest.mark.parametrize(
    ("epoch", "told"),
    [
        (0, "last     no promotion yet"),
        (3, "last     not known: the witness holds no journal of an ended promotion (epoch 3)"),
    ],
)
def test_a_journal_that_is_lost_is_not_told_as_no_promotion(epoch: int, told: str) -> None:
    active = ActiveSite(site="dc2", epoch=epoch)
    status = Status(active=active, sites=(), flows=(), unfinished=None, last=None)
    assert [*status_lines(status)][-1] == told


def test_many_topics_are_named_in_part_unless_all_or_some_are_asked_for() -> None:
    names = tuple(f"t-{number:04}" for number in range(5_000))
    some = ShownNames().words(names)
    assert some == f"{', '.join(names[:10])} and 4990 more (--all lists them)"
    assert ShownNames(lists_all=True).words(names) == ", ".join(names)
    chosen = ShownNames(topic=re.compile("t-000[12]"))
    assert chosen.words(names) == "2 of 5000 topics: t-0001, t-0002"
    site = SiteStatus(
        name="dc1", is_active=False, fault=None, fenced_topics=names, allowed_clients=()
    )
    document = status_document(replace(BACK, sites=(site,)), chosen)
    assert document["sites"][0]["fenced_topics"] == ["t-0001", "t-0002"]
