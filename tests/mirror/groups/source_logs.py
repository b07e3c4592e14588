"""Logs of positions as they lie on a source."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from mirror.clusters.links import Links
from mirror.flow.flow_state import FlowState
from mirror.groups.source_groups import SourceGroups
from mirror.state.measurements import FlowMeasurements
from runtime.configuration.flow_section import PatternSet
from tests.doubles.fake_cluster import FakeCluster
from tests.mirror.building import CONFIG
from wire.consumer_offsets import OffsetKey, OffsetValue, encode_key, encode_offset_value
from wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)
from wire.net import open_cluster
from wire.record_batch import Record, assign_offsets, build_batch


@asynccontextmanager
async def source_of(fake: FakeCluster) -> AsyncIterator[tuple[SourceGroups, FlowState, Links]]:
    everything = PatternSet(include=(re.compile(".*"),), exclude=())
    flow = FlowState(
        config=replace(CONFIG, groups=everything, group_poll_interval_ms=10),
        measurements=FlowMeasurements("f"),
    )
    async with open_cluster(fake.bootstrap, client_id="test") as cluster:
        links = Links(
            source_data=cluster,
            source_groups=cluster,
            source_admin=cluster,
            target_data=cluster,
            target_admin=cluster,
        )
        yield SourceGroups(flow.live_config, flow.measurements), flow, links


def commits(base: int, *groups: str) -> bytes:
    """Return a batch of commits, of the offset at which each lies."""
    batch = bytearray(
        build_batch(
            [
                Record(
                    place,
                    1,
                    encode_key(OffsetKey(group=group, topic="orders", partition=0)),
                    encode_offset_value(OffsetValue(offset=base + place, commit_timestamp_ms=1)),
                )
                for place, group in enumerate(groups)
            ]
        )
    )
    assign_offsets(batch, base, 0)
    return bytes(batch)


def damaged(batch: bytes, at: int, byte: int) -> bytes:
    return batch[:at] + bytes([byte]) + batch[at + 1 :]


Stored = tuple[int, bytes]
"""The offset behind a batch, and the batch."""


def fetched(logs: Mapping[int, Sequence[Stored]], request: FetchRequest) -> FetchResponse:
    """Answer as a broker that looks at nothing but where its batches end."""
    [asked] = request.topics
    return FetchResponse(
        responses=(
            FetchableTopicResponse(
                topic_id=asked.topic_id,
                partitions=tuple(
                    FetchPartitionData(
                        partition_index=one.partition,
                        error_code=0,
                        high_watermark=logs[one.partition][-1][0],
                        records=b"".join(
                            batch for end, batch in logs[one.partition] if end > one.fetch_offset
                        ),
                    )
                    for one in asked.partitions
                ),
            ),
        )
    )
