"""Flows whose topics `failover divergence` does not compare are named, and not called clean."""

from pathlib import Path
from typing import Any

import pytest

from failover.view.divergence import not_looked_at
from runtime.configuration.config import load
from tests.dc_yaml import dc_yaml, flow


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"names": "prefixed"}, "(`names: prefixed`)"),
        ({"active_active": True}, "(`active_active: true`)"),
        ({}, None),
    ],
)
def test_a_flow_that_is_not_compared_is_named_with_what_compares_it(
    tmp_path: Path, settings: dict[str, Any], why: str | None
) -> None:
    file = tmp_path / "dc.yaml"
    ways = [flow(*way, "orders", **settings) for way in (("dc1", "dc2"), ("dc2", "dc1"))]
    file.write_text(dc_yaml(*ways, failover={"initial_active": "dc1"}))
    told = [*not_looked_at(load(file))]
    assert [line.split(":", 1)[0] for line in told] == (
        ["dc1->dc2 was NOT looked at", "dc2->dc1 was NOT looked at"] if why else []
    )
    assert all(why in line and "`spark-audit run` compares" in line for line in told if why)
