"""Which flows of a file are compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runtime.configuration.config import Configuration, load
from runtime.coordination.witness import ActiveSite
from spark_audit.snapshot.bounds import Snapshot
from spark_audit.snapshot.directions import (
    comparable_flows,
    has_ways_back,
    require_still_comparable,
)
from spark_audit.snapshot.seals import CannotTell
from tests.dc_yaml import NOWHERE, dc_yaml, flow

FORTH = ("dc1", "dc2")
BACK = ("dc2", "dc1")
ASIDE = ("dc1", "dc3")
UNTOUCHED = Snapshot(
    flow="dc1->dc2",
    source="dc1",
    target="dc2",
    taken_ms=0,
    promotion=None,
    partitions=(),
    only_on_target=(),
)


def _configuration(
    tmp_path: Path, *ways: tuple[str, str], initial: str = "dc1", **settings: Any
) -> Configuration:
    file = tmp_path / "dc.yaml"
    flows = [flow(*way, **settings) for way in ways]
    file.write_text(
        dc_yaml(*flows, clusters={"dc3": NOWHERE}, failover={"initial_active": initial})
    )
    return load(file)


def _compared(configuration: Configuration, active: ActiveSite | None) -> list[tuple[str, bool]]:
    return [(flow.name, both) for flow, both in comparable_flows(configuration, active)]


def test_a_flow_without_a_way_back_is_compared_whoever_is_active(tmp_path: Path) -> None:
    configuration = _configuration(tmp_path, FORTH, ASIDE)
    assert not has_ways_back(configuration)
    compared = _compared(configuration, ActiveSite(site="dc2", epoch=3))
    assert compared == [("dc1->dc2", False), ("dc1->dc3", False)]


@pytest.mark.parametrize("active", [None, ActiveSite(site="dc1", epoch=0)])
def test_before_the_first_promotion_the_way_back_rests(
    tmp_path: Path, active: ActiveSite | None
) -> None:
    configuration = _configuration(tmp_path, BACK, FORTH, ASIDE)
    assert has_ways_back(configuration)
    assert _compared(configuration, active) == [("dc1->dc2", False), ("dc1->dc3", False)]


def test_which_site_is_active_is_the_witnesss_word(tmp_path: Path) -> None:
    configuration = _configuration(tmp_path, FORTH, BACK, initial="dc1")
    compared = _compared(configuration, ActiveSite(site="dc2", epoch=0))
    assert compared == [("dc2->dc1", False)]


@pytest.mark.parametrize(
    "active", [ActiveSite(site="dc2", epoch=1), ActiveSite(site="dc1", epoch=2)]
)
def test_behind_a_promotion_both_directions_are_compared_by_origin(
    tmp_path: Path, active: ActiveSite
) -> None:
    compared = _compared(_configuration(tmp_path, FORTH, BACK, ASIDE), active)
    assert compared == [("dc1->dc2", True), ("dc2->dc1", True), ("dc1->dc3", False)]


def test_of_sites_both_written_to_both_directions_are_compared_by_origin(tmp_path: Path) -> None:
    configuration = _configuration(tmp_path, FORTH, BACK, active_active=True)
    compared = _compared(configuration, None)
    assert compared == [("dc1->dc2", True), ("dc2->dc1", True)]


def test_with_prefixed_names_each_direction_is_compared_by_itself(tmp_path: Path) -> None:
    configuration = _configuration(tmp_path, FORTH, BACK, names="prefixed")
    assert not has_ways_back(configuration)
    for active in (None, ActiveSite(site="dc2", epoch=3)):
        compared = _compared(configuration, active)
        assert compared == [("dc1->dc2", False), ("dc2->dc1", False)]


def test_the_first_promotion_during_the_snapshot_is_told(tmp_path: Path) -> None:
    promoted = replace(UNTOUCHED, promotion=1)
    both = _configuration(tmp_path, FORTH, BACK)
    require_still_comparable(both, both.flows[0], UNTOUCHED, is_both_ways=False)
    require_still_comparable(both, both.flows[0], promoted, is_both_ways=True)
    with pytest.raises(CannotTell, match="promotion 1 came while the audit began; run it again"):
        require_still_comparable(both, both.flows[0], promoted, is_both_ways=False)
    one = _configuration(tmp_path, FORTH)
    require_still_comparable(one, one.flows[0], promoted, is_both_ways=False)


def test_directions_between_sites_of_which_none_is_active_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="neither of its sites is active"):
        _compared(_configuration(tmp_path, FORTH, BACK, ASIDE, initial="dc3"), None)
