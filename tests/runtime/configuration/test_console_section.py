"""The section `console`: records are shown of named topics alone, and to nobody unknown."""

from pathlib import Path
from typing import Any

import pytest

from runtime.configuration.config import ConfigurationError, load
from runtime.configuration.console_section import PeekedTopics
from tests.dc_yaml import FREE_PORTS, dc_yaml


def loaded(folder: Path, metrics: Any, **console: Any) -> PeekedTopics:
    file = folder / "dc.yaml"
    file.write_text(dc_yaml(metrics={**FREE_PORTS, **metrics}, console=console))
    return load(file).console.peek


def test_no_record_is_shown_unless_topics_are_named(tmp_path: Path) -> None:
    assert not loaded(tmp_path, {}).is_any
    peeked = loaded(tmp_path, {"token": "t"}, peek=["orders", r"eu\..*"])
    assert [peeked.matches(one) for one in ("orders", "orders2", "eu.x", "euxx")] == [
        True,
        False,
        True,
        False,
    ]


def test_pages_that_show_records_are_guarded_at_loopback_too(tmp_path: Path) -> None:
    for metrics in ({}, {"unguarded": True}):
        with pytest.raises(ConfigurationError, match=r"console\.peek: shows records to everybody"):
            loaded(tmp_path, metrics, peek=[".*"])
    with pytest.raises(ConfigurationError, match=r"console\.peek: '\('"):
        loaded(tmp_path, {"token": "t"}, peek=["("])
