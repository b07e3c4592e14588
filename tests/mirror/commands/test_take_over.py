"""What `mirror take-over` writes of topics that it does not take over."""

from typing import Any
from uuid import UUID

import pytest

from mirror.clusters.links import Links
from mirror.commands import take_over
from mirror.commands.positions import DONE
from offset_translation.map_records import piece_start, source_topic
from offset_translation.map_state import MapState
from offset_translation.runs import Place
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from wire.net import open_cluster
from wire.topic_partition import TopicPartition

OLD = UUID(int=99)


async def test_a_topic_that_was_made_again_is_not_noted_as_the_one_that_was_mirrored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = MapState()
    state.replay(*piece_start("known", 0, source_start=0, place=Place(0)))
    state.replay(*source_topic("known", OLD))

    async def nothing(*_: Any, **__: Any) -> Any:
        return []

    async def places(*_: Any) -> dict[TopicPartition, None]:
        return {TopicPartition("known", 0): None, TopicPartition("new", 0): None}

    async def the_map(*_: Any) -> MapState:
        return state

    async def take_one(_: Any, __: Any, place: TopicPartition, ___: Any) -> Any:
        return "goes on", [piece_start(*place, source_start=0, place=Place(0))]

    async def write(*arguments: Any) -> None:
        for record in arguments[-1]:
            state.replay(*record)

    fakes: dict[str, Any] = {
        "_refuse_beside_mirrormaker": nothing,
        "_records_of": nothing,
        "_syncs": nothing,
        "source_ends": places,
        "read_target_ends": places,
        "read_map": the_map,
        "_take_over_one": take_one,
        "write_records": write,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(take_over, name, fake)
    async with run_fake_cluster() as dc1, open_cluster(dc1.bootstrap, client_id="t") as cluster:
        ids = {name: dc1.create_topic(name, 0).topic_id for name in ("known", "new")}
        links = Links(
            source_data=cluster,
            source_groups=cluster,
            source_admin=cluster,
            target_data=cluster,
            target_admin=cluster,
        )
        assert (
            await take_over._take_over(CONFIG, links, MemoryWriters(), "offsets", write=True)
            == DONE
        )
    assert state.topic_ids == {"known": OLD, "new": ids["new"]}
