"""The section `failover.rehearsal`: off without it, and a set of topics of its own with it."""

import re
from pathlib import Path
from typing import Any

import pytest

from failover.client.set_of_client import configuration_of_set
from runtime.configuration.config import Configuration, ConfigurationError, load
from runtime.configuration.rehearsal_section import HOUR_MS, RehearsalConfig
from runtime.configuration.topic_sets import DEFAULT_SET, REHEARSAL_SET, REHEARSAL_TOPIC
from tests.dc_yaml import dc_yaml, flow

BOTH_WAYS = (("dc1", "dc2"), ("dc2", "dc1"))
TOPICS = ["orders", "failover.rehearsal.*"]


def loaded(
    folder: Path, ways: Any = BOTH_WAYS, topics: Any = TOPICS, of_flow: Any = None, **failover: Any
) -> Configuration:
    file = folder / "dc.yaml"
    flows = (flow(source, target, topics, **(of_flow or {})) for source, target in ways)
    file.write_text(dc_yaml(*flows, failover={"initial_active": "dc1", **failover}))
    return load(file)


def test_without_the_section_there_is_no_further_set(tmp_path: Path) -> None:
    configuration = loaded(tmp_path)
    assert configuration.failover.rehearsal is None
    assert configuration.sets.names == (DEFAULT_SET,)


def test_an_empty_section_makes_the_set_and_nobody_is_asked_which_set_is_meant(
    tmp_path: Path,
) -> None:
    hook = {"name": "dns", "after": "switch", "command": ["move-dns"]}
    configuration = loaded(tmp_path, rehearsal={}, hooks=[hook], canary={"topic": "orders"})
    assert configuration.failover.rehearsal == RehearsalConfig()
    assert configuration.sets.names == (DEFAULT_SET, REHEARSAL_SET)
    assert configuration.sets.of_applications == (DEFAULT_SET,)
    assert configuration.sets.set_of(REHEARSAL_TOPIC) == REHEARSAL_SET
    rehearsed = configuration.of_set(REHEARSAL_SET)
    assert [one.mirrors("orders") for one in rehearsed.flows] == [False, False]
    assert rehearsed.failover.hooks == (), "hooks lead applications"
    assert configuration.of_set(DEFAULT_SET).failover.hooks == configuration.failover.hooks
    assert configuration_of_set(configuration, None).topic_set == DEFAULT_SET
    assert configuration_of_set(configuration, None, ["orders"]).topic_set == DEFAULT_SET
    assert configuration_of_set(configuration, None, [REHEARSAL_TOPIC]).topic_set == REHEARSAL_SET


def test_a_schedule_has_an_age_at_which_the_last_one_is_too_old(tmp_path: Path) -> None:
    nightly = {"every_hours": 24, "at": "03:30"}
    found = loaded(tmp_path, rehearsal=nightly).failover.rehearsal
    assert found == RehearsalConfig(
        every_ms=24 * HOUR_MS, at_ms=7 * HOUR_MS // 2, stale_after_ms=48 * HOUR_MS
    )
    found = loaded(tmp_path, rehearsal={**nightly, "stale_after_hours": 30}).failover.rehearsal
    assert found is not None
    assert found.stale_after_ms == 30 * HOUR_MS


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"rehearsal": {"at": "3:30", "every_hours": 1}}, "rehearsal.at: '3:30' is no time of day"),
        ({"rehearsal": {"at": "03:30"}}, "rehearsal.at: says when, and `every_hours` is missing"),
        ({"rehearsal": {"partition": 1}}, "did you mean 'partitions'?"),
        ({"rehearsal": {}, "sets": {"a": {"topics": "failover.*"}}}, "failover.rehearsal.* would"),
        ({"sets": {"rehearsal": {"topics": "a"}}}, "sets.rehearsal: is the set that `failover.reh"),
        ({"rehearsal": {}, "topics": "orders"}, "rehearsal has failover.rehearsal.*, of which dc1"),
        ({"rehearsal": {}, "ways": BOTH_WAYS[:1]}, "back, and there is no flow dc2->dc1"),
        (
            {"rehearsal": {}, "of_flow": {"groups": {"include": "app.*"}}},
            "rehearsal: dc1->dc2 does not translate the group failover.rehearsal",
        ),
        (
            {"rehearsal": {}, "of_flow": {"active_active": True}},
            "rehearsal: makes sets of topics, which are promoted, and dc1->dc2 heeds no promotion",
        ),
    ],
)
def test_what_cannot_be_rehearsed_is_refused(
    tmp_path: Path, given: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(complaint)):
        loaded(tmp_path, **given)
