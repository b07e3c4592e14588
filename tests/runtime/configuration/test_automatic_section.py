"""The section `failover.automatic`: off without one, refused by name where it cannot be safe."""

from pathlib import Path
from typing import Any

import pytest

from runtime.configuration.automatic_section import AutomaticConfig
from runtime.configuration.config import ConfigurationError, load
from tests.dc_yaml import dc_yaml, flow

VOTERS = {"a": "dc1", "b": "dc2", "c": "office"}


def loaded(folder: Path, *flows: str, **failover: Any) -> AutomaticConfig | None:
    file = folder / "dc.yaml"
    file.write_text(dc_yaml(*flows, failover={"loss_budget": {"records": 0}, **failover}))
    return load(file).failover.automatic


def test_without_the_section_nothing_is_promoted_by_itself(tmp_path: Path) -> None:
    assert loaded(tmp_path) is None


def test_three_voters_at_three_places_are_enough(tmp_path: Path) -> None:
    config = loaded(tmp_path, automatic={"voters": VOTERS})
    assert config == AutomaticConfig(voters=VOTERS, after_ms=60_000, cooldown_ms=3_600_000)
    assert config.majority == 2


@pytest.mark.parametrize(
    ("automatic", "complaint"),
    [
        ({"voters": {"a": "dc1"}}, r"failover\.automatic\.voters: 1 voters .*: 3 at least"),
        ({"voters": {"a": "dc1", "b": "dc2"}}, r"failover\.automatic\.voters: 2 voters"),
        ({"after_ms": 60_000}, r"failover\.automatic\.voters: 0 voters"),
        (
            {"voters": {**VOTERS, "c": "dc2"}},
            r"failover\.automatic\.voters\.c: b looks from dc2 already",
        ),
        ({"voters": {f"v{n}": f"p{n}" for n in range(16)}}, r"has 16 voters, more than 15"),
        ({"voters": VOTERS, "after_ms": 10}, r"failover\.automatic\.after_ms"),
        ({"voters": VOTERS, "quorum": 1}, r"failover\.automatic\.quorum: unknown key"),
    ],
)
def test_too_few_voters_or_two_at_a_place_are_refused_by_name(
    tmp_path: Path, automatic: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        loaded(tmp_path, automatic=automatic)


def test_without_a_loss_budget_nobody_says_how_much_may_be_lost(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"automatic: needs failover\.loss_budget"):
        loaded(tmp_path, automatic={"voters": VOTERS}, loss_budget={})


def test_sites_that_are_both_written_to_are_refused(tmp_path: Path) -> None:
    both = [flow(*way, active_active=True) for way in (("dc1", "dc2"), ("dc2", "dc1"))]
    with pytest.raises(ConfigurationError, match=r"automatic: dc1->dc2 has `active_active: true`"):
        loaded(tmp_path, *both, initial_active="dc1", automatic={"voters": VOTERS})


def test_two_sites_that_could_take_over_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    failover = {"loss_budget": {"seconds": 5}, "automatic": {"voters": VOTERS}}
    clusters = {"dc3": {"bootstrap": "c:1"}}
    ways = (flow(), flow("dc1", "dc3"))
    file.write_text(dc_yaml(*ways, failover=failover, clusters=clusters))
    with pytest.raises(ConfigurationError, match=r"both dc2 and dc3 could take over from dc1"):
        load(file)
