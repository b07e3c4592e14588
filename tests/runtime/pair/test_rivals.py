"""Other pairs that move topics of ours, whatever their patterns are."""

from collections.abc import Mapping
from dataclasses import replace
from time import monotonic

import pytest

from runtime.pair.evidence import Evidence, Patterns
from runtime.pair.rivals import RivalsUnknown, find_candidates, find_rivals

IDS = {"dc1": "id-1", "dc2": "id-2"}
ORDERS = {"dc1->dc2": Patterns(include=("orders.*",), exclude=("orders-old",))}
RIVAL = Evidence(path="/other", pair="p", clusters=IDS, active="dc1", epoch=3, topics=ORDERS)


def candidates(*evidence: Evidence) -> list[Evidence]:
    return find_candidates(evidence, path="/dr", sites=IDS, cluster_id="id-1")


async def rivals(evidence: Evidence, *topics: str) -> Mapping[str, Evidence]:
    return await find_rivals([evidence], topics)


async def test_a_pair_at_another_path_that_moves_the_same_topic_is_a_rival() -> None:
    assert await rivals(RIVAL, "orders-old", "orders", "payments") == {"orders": RIVAL}


async def test_pairs_that_move_different_topics_are_no_rivals() -> None:
    assert await rivals(RIVAL, "payments") == {}
    assert await rivals(RIVAL, "orders-old") == {}
    assert await rivals(RIVAL) == {}


def test_evidence_that_was_copied_from_other_clusters_is_no_rival() -> None:
    copied = replace(RIVAL, clusters={"dc1": "id-7"})
    ours = replace(RIVAL, path="/dr")
    assert candidates(copied, RIVAL, ours) == [RIVAL]


async def test_a_pattern_that_is_not_understood_matches_nothing() -> None:
    odd = replace(RIVAL, topics={"x": Patterns(include=("(", "a{99999999999}"), exclude=())})
    assert await rivals(odd, "orders") == {}


@pytest.mark.parametrize("pattern", ["(.*)*!", "(o|r|d|e|s|or|der)*!", "(.*.*.*.*.*.*.*)*!"])
async def test_a_pattern_that_takes_for_ever_is_told_and_not_waited_for(pattern: str) -> None:
    """A topic of 249 characters would keep each of them busy for years."""
    hostile = replace(RIVAL, topics={"x": Patterns(include=(pattern,), exclude=())})
    began = monotonic()
    with pytest.raises(RivalsUnknown, match=r"within 0\.5 s.*dc1 and dc2 at /other.*delete"):
        await find_rivals([RIVAL, hostile], ["orders" * 41], limit_s=0.5)
    assert monotonic() - began < 30
