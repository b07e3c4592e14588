"""What the builder of configurations writes is what the programs read."""

from pathlib import Path

from runtime.configuration.config import load
from tests.dc_yaml import dc_yaml, flow


def test_what_is_not_said_is_a_flow_of_everything_between_two_sites(tmp_path: Path) -> None:
    (tmp_path / "dc.yaml").write_text(dc_yaml())
    configuration = load(tmp_path / "dc.yaml")
    (found,) = configuration.flows
    assert (found.name, found.moves("any")) == ("dc1->dc2", True)
    assert configuration.metrics.mirror_port == 0


def test_what_is_said_is_there(tmp_path: Path) -> None:
    text = dc_yaml(
        flow(topics="a.*", more="on_target_refused: skip\n\n    client_rack: r", names="prefixed"),
        flow("dc2", "dc3", ["x", 'y"z'], discovery_interval_ms=300),
        dc1={"bootstrap": ["h:1", "h:2"]},
        dc2="h:3",
        clusters={"dc3": "h:4"},
        path="/p",
        coordination={"session_timeout_ms": 4_000},
        failover={"initial_active": "dc2"},
    )
    (tmp_path / "dc.yaml").write_text(text)
    configuration = load(tmp_path / "dc.yaml")
    one, two = configuration.flows
    assert one.is_prefixed
    assert [one.moves(topic) for topic in ("ab", "b")] == [True, False]
    assert [two.moves(topic) for topic in ("x", 'y"z', "z")] == [True, True, False]
    assert two.discovery_interval_ms == 300
    assert configuration.clusters["dc1"].bootstrap == (("h", 1), ("h", 2))
    assert configuration.clusters["dc3"].bootstrap == (("h", 4),)
    assert configuration.failover.initial_active == "dc2"
    assert "session_timeout_ms: 4000" in text
