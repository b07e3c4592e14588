"""Which flows of a file are compared."""

from dataclasses import replace
from pathlib import Path

import pytest

from runtime.config import Configuration, load
from runtime.witness import ActiveSite
from spark_audit.bounds import Snapshot
from spark_audit.directions import comparable_flows, has_ways_back, require_one_way
from spark_audit.seals import CannotTell

FORTH = "{source: dc1, target: dc2}"
BACK = "{source: dc2, target: dc1}"
ASIDE = "{source: dc1, target: dc3}"
BOTH = "active_active: true}"
UNTOUCHED = Snapshot(
    flow="dc1->dc2",
    source="dc1",
    target="dc2",
    taken_ms=0,
    promotion=None,
    partitions=(),
    only_on_target=(),
)


def _configuration(tmp_path: Path, *flows: str, initial: str = "dc1") -> Configuration:
    file = tmp_path / "dc.yaml"
    file.write_text(
        "clusters:\n"
        "  {dc1: {bootstrap: ['h:1']}, dc2: {bootstrap: ['h:2']}, dc3: {bootstrap: ['h:3']}}\n"
        f"flows: [{', '.join(flows)}]\n"
        "coordination: {zookeeper: ['h:4']}\n"
        f"failover: {{initial_active: {initial}}}\n"
    )
    return load(file)


def _compared(configuration: Configuration, active: ActiveSite | None) -> list[str]:
    return [flow.name for flow in comparable_flows(configuration, active)]


def test_a_flow_without_a_way_back_is_compared_whoever_is_active(tmp_path: Path) -> None:
    configuration = _configuration(tmp_path, FORTH, ASIDE)
    assert not has_ways_back(configuration)
    assert _compared(configuration, ActiveSite(site="dc2", epoch=3)) == ["dc1->dc2", "dc1->dc3"]


@pytest.mark.parametrize("active", [None, ActiveSite(site="dc1", epoch=0)])
def test_before_the_first_promotion_the_way_back_rests(
    tmp_path: Path, active: ActiveSite | None
) -> None:
    configuration = _configuration(tmp_path, BACK, FORTH, ASIDE)
    assert has_ways_back(configuration)
    assert _compared(configuration, active) == ["dc1->dc2", "dc1->dc3"]


def test_which_site_is_active_is_the_witnesss_word(tmp_path: Path) -> None:
    configuration = _configuration(tmp_path, FORTH, BACK, initial="dc1")
    assert _compared(configuration, ActiveSite(site="dc2", epoch=0)) == ["dc2->dc1"]


@pytest.mark.parametrize(
    "active", [ActiveSite(site="dc2", epoch=1), ActiveSite(site="dc1", epoch=2)]
)
def test_behind_a_promotion_nothing_is_told_of_both_directions(
    tmp_path: Path, active: ActiveSite
) -> None:
    with pytest.raises(CannotTell, match="both directions"):
        _compared(_configuration(tmp_path, FORTH, BACK), active)


def test_a_promotion_during_the_snapshot_counts(tmp_path: Path) -> None:
    promoted = replace(UNTOUCHED, promotion=1)
    both = _configuration(tmp_path, FORTH, BACK)
    require_one_way(both, both.flows[0], UNTOUCHED)
    with pytest.raises(CannotTell, match="both directions"):
        require_one_way(both, both.flows[0], promoted)
    one = _configuration(tmp_path, FORTH)
    require_one_way(one, one.flows[0], promoted)


@pytest.mark.parametrize(
    ("flows", "initial"),
    [
        ((f"{FORTH[:-1]}, {BOTH}", f"{BACK[:-1]}, {BOTH}"), "dc1"),
        ((FORTH, BACK, ASIDE), "dc3"),
    ],
)
def test_directions_that_may_both_have_run_are_refused(
    tmp_path: Path, flows: tuple[str, ...], initial: str
) -> None:
    with pytest.raises(CannotTell, match="both directions"):
        _compared(_configuration(tmp_path, *flows, initial=initial), None)
