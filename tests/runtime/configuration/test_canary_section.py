"""The section `failover.canary`: off without a topic."""

from pathlib import Path
from typing import Any

import pytest

from runtime.configuration.canary_section import CanaryConfig
from runtime.configuration.config import ConfigurationError, load
from tests.dc_yaml import dc_yaml


def loaded(folder: Path, **failover: Any) -> CanaryConfig | None:
    file = folder / "dc.yaml"
    file.write_text(dc_yaml(failover=failover))
    return load(file).failover.canary


def test_without_a_topic_there_is_no_canary(tmp_path: Path) -> None:
    assert loaded(tmp_path) is None
    with pytest.raises(ConfigurationError, match=r"failover\.canary\.topic: is missing"):
        loaded(tmp_path, canary={"interval_ms": 500})


def test_a_topic_is_enough(tmp_path: Path) -> None:
    assert loaded(tmp_path, canary={"topic": "canary"}) == CanaryConfig(topic="canary")
