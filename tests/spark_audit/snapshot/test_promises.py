"""Positions of groups on both sides find each other, whatever the target calls the topic."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runtime.configuration.config import load
from spark_audit.snapshot import promises
from spark_audit.snapshot.bounds import GroupPlace
from tests.dc_yaml import dc_yaml, flow
from wire.topic_partition import TopicPartition


@pytest.mark.parametrize(("names", "copy"), [("identical", "orders"), ("prefixed", "dc1.orders")])
async def test_a_groups_positions_in_a_topic_and_in_its_copy_are_a_pair(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, names: str, copy: str
) -> None:
    positions = {
        "dc1": {TopicPartition("orders", 3): SimpleNamespace(offset=9)},
        "dc2": {
            TopicPartition(copy, 3): SimpleNamespace(offset=7),
            TopicPartition("of-dc2", 0): SimpleNamespace(offset=5),
        },
    }

    async def listed(_: object) -> dict[str, Any]:
        return {"billing": SimpleNamespace(group_state="Empty")}

    async def fetched(site: str, groups: list[str]) -> dict[str, Any]:
        return dict.fromkeys(groups, positions[site])

    monkeypatch.setattr(promises, "list_groups", listed)
    monkeypatch.setattr(promises, "fetch_offsets_of", fetched)
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(flow(names=names)))
    source: Any = "dc1"
    target: Any = "dc2"
    found = await promises.group_places(source, target, load(file).flows[0])
    assert found.by_partition == {TopicPartition("orders", 3): (GroupPlace("billing", 9, 7),)}
