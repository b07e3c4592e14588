"""Settings where both directions run at once: who changes one is not overruled by the other."""

from dataclasses import replace
from typing import Any

import pytest

from mirror.flow.flow_state import FlowState
from mirror.map.map_log import MapLog
from mirror.state.measurements import FlowMeasurements
from mirror.topics import discovery as topics
from mirror.topics.discovery import Discovery
from mirror.topics.setting_changes import OwnChanges
from tests.doubles.fake_cluster import FakeCluster
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from tests.mirror.topics.discovering import discovery, note_changes, tell_settings
from wire.headers import RequestHeader
from wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest


def test_what_could_not_be_set_yet_stays_due_and_what_is_set_does_not() -> None:
    changes = OwnChanges("dc2", "dc1")
    assert changes.due("t", {"a": "1", "b": "1"}, {"a": "2"}) == {"b": "1"}
    assert changes.due("t", {"a": "3", "b": "1"}, {"a": "2"}) == {"a": "3", "b": "1"}
    assert changes.due("t", {"a": "3", "b": "1"}, {"a": "2", "b": "1"}) == {"a": "3"}
    assert changes.due("t", {"a": "3"}, {"a": "3"}) == {}
    assert changes.due("t", {"a": "3"}, {"a": "4"}) == {}


def test_where_nobody_has_seen_the_change_one_site_alone_is_right() -> None:
    one, two = {"a": "1"}, {"a": "2"}
    assert OwnChanges("dc1", "dc2").due("t", one, two) == one
    assert OwnChanges("dc2", "dc1").due("t", two, one) == {}


def keep_settings(fake: FakeCluster, settings: dict[str, str]) -> None:
    """Have a cluster tell these settings, and set what it is asked to."""
    note_changes(fake)
    tell_settings(fake, settings)
    answer = fake.brokers[0].scripts[IncrementalAlterConfigsRequest.API_KEY]

    async def alter(header: RequestHeader, request: Any) -> Any:
        [resource] = request.resources
        settings.update({one.name: one.value for one in resource.configs})
        return await answer(header, request)

    fake.brokers[0].scripts[IncrementalAlterConfigsRequest.API_KEY] = alter


@pytest.mark.parametrize("changed", ["dc1", "dc2"])
@pytest.mark.parametrize("first", [0, 1])
async def test_a_change_on_one_site_comes_to_the_other_whichever_direction_looks_first(
    monkeypatch: pytest.MonkeyPatch, changed: str, first: int
) -> None:
    monkeypatch.setattr(topics, "CONFIG_INTERVAL_MS", 0)
    config = replace(CONFIG, is_active_active=True)
    settings = {name: {"retention.ms": "1"} for name in ("dc1", "dc2")}
    async with discovery(config) as (there, dc1, dc2, _):
        for fake, name in ((dc1, "dc1"), (dc2, "dc2")):
            keep_settings(fake, settings[name])
            fake.create_topic("orders", 0)
            fake.create_topic(f"{'dc1' if name == 'dc2' else 'dc2'}.offset-map.internal", 0)
        links = replace(
            there._links,
            source_admin=there._links.target_admin,
            target_admin=there._links.source_admin,
        )
        back_config = replace(there._config.current, source="dc2", target="dc1")
        flow = FlowState(config=back_config, measurements=FlowMeasurements("b"))
        flow.share.lead()
        back = Discovery(
            flow.for_discovery, links, MapLog(links.target_admin, "dc2", None, MemoryWriters())
        )
        for looking, fake in ((there, dc1), (back, dc2)):
            ids = looking._map_log.state.topic_ids
            ids["orders"] = fake.topics["orders"].topic_id
        both = (there, back) if first == 0 else (back, there)
        for looking in both:
            await looking.discover()
        settings[changed]["retention.ms"] = "2"
        for _ in range(2):
            for looking in both:
                await looking.discover()
    assert settings == {name: {"retention.ms": "2"} for name in ("dc1", "dc2")}
