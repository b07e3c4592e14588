"""Whose a batch is, where records flow both ways and one map is lost."""

from typing import Any

import pytest

from mirror.links import Links
from mirror.map_log import MAP_SETTINGS
from mirror.rebuild_map import is_copy, write_records
from offset_translation.map_records import map_topic_name, piece_start
from offset_translation.offset_map import OffsetMap
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from tests.mirror.test_policies import CONFIG
from wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.net import open_cluster
from wire.record_batch import Record, assign_offsets, build_batch, parse_header

MIRROR, OTHER = 7, 8


def backward() -> OffsetMap:
    """The target's own records are 30..49; the source has them from 30 on."""
    offset_map = OffsetMap.from_starts([(30, 0)], 0)
    offset_map.begin_run(0, 30)
    offset_map.advance(50)
    return offset_map


@pytest.mark.parametrize(
    ("at", "producer_id", "is_transactional", "expected"),
    [
        (0, MIRROR, False, True),
        (29, OTHER, False, True),
        (30, MIRROR, False, False),
        (49, OTHER, False, False),
        (50, MIRROR, False, True),
        (50, OTHER, False, False),
        (0, MIRROR, True, False),
        (0, -1, False, False),
    ],
)
def test_what_the_other_direction_has_taken_is_the_targets_own(
    at: int, producer_id: int, is_transactional: bool, expected: bool
) -> None:
    batch = bytearray(
        build_batch(
            [Record(0, 1, None, b"v")],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=is_transactional,
        )
    )
    assign_offsets(batch, at, 0)
    assert is_copy(parse_header(batch), backward(), {MIRROR}) is expected


def let_create(fake: FakeCluster) -> dict[str, str | None]:
    """Have the cluster make topics; return the settings that it will be asked to give them."""
    asked: dict[str, str | None] = {}

    async def create(_: object, request: CreateTopicsRequest) -> CreateTopicsResponse:
        [topic] = request.topics
        asked.update({one.name: one.value for one in topic.configs})
        fake.create_topic(topic.name, 0)
        return CreateTopicsResponse(topics=(CreatableTopicResult(name=topic.name, error_code=0),))

    fake.versions[CreateTopicsRequest.API_KEY] = CreateTopicsRequest.VERSIONS
    fake.brokers[0].scripts[CreateTopicsRequest.API_KEY] = create
    return asked


async def test_a_map_that_is_written_anew_is_as_safe_as_one_that_the_mirror_makes() -> None:
    async with run_fake_cluster(1) as fake:
        asked = let_create(fake)
        async with open_cluster(fake.bootstrap, client_id="test") as client:
            nobody: Any = None
            links = Links(
                source_data=nobody,
                source_groups=nobody,
                source_admin=nobody,
                target_data=client,
                target_admin=client,
            )
            record = piece_start("t", 0, source_start=5, target_start=0)
            await write_records(CONFIG, links, [record])
        [batch] = fake.topics[map_topic_name("dc1")].partitions[0].batches
    assert parse_header(batch).record_count == 1
    assert asked == MAP_SETTINGS
