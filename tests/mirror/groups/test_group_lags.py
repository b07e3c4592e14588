"""For how long a group lags: from two looks on, and unknown before."""

from uuid import UUID

import pytest

from mirror.groups.group_lags import GroupLags
from mirror.groups.source_groups import SourceGroups, SourcePosition
from mirror.state.flow_partitions import FlowPartitions
from mirror.state.live_config import LiveConfig
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition import MirroredPartition
from offset_translation.offset_map import OffsetMap
from tests.mirror.building import CONFIG
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("t", 0)


class Lagging:
    """One group on one partition, whose log and position move as a test says."""

    def __init__(self) -> None:
        self.groups = SourceGroups(LiveConfig(CONFIG), FlowMeasurements("f"))
        partitions = FlowPartitions()
        self.partition = MirroredPartition(
            *PLACE, topic_id=UUID(int=1), offset_map=OffsetMap.from_starts([(0, 0)], 0), now_ms=0
        )
        partitions.take(self.partition)
        self.lags = GroupLags(self.groups, partitions)

    async def look(self, *, end: int, position: int, now_ms: int) -> int | None:
        """Hear both, look, and return the lag."""
        self.partition.source.hear(end, end, 0, now_ms)
        self.groups.positions["g"] = {PLACE: SourcePosition(position, "")}
        await self.lags.look()
        return self.lags.lag_ms(("g", *PLACE), position, self.partition, now_ms)


@pytest.fixture
def lagging() -> Lagging:
    return Lagging()


async def test_a_group_that_was_never_seen_at_the_end_has_no_known_lag(lagging: Lagging) -> None:
    assert await lagging.look(end=10, position=3, now_ms=1_000) is None
    assert await lagging.look(end=20, position=9, now_ms=9_000) is None


async def test_a_group_at_the_end_lags_by_nothing_however_long_nothing_came(
    lagging: Lagging,
) -> None:
    assert await lagging.look(end=10, position=10, now_ms=1_000) == 0
    assert await lagging.look(end=10, position=10, now_ms=3_600_000) == 0
    assert await lagging.look(end=11, position=10, now_ms=3_602_000) == 2_000


async def test_a_group_at_work_lags_since_the_log_ended_where_it_is_now(lagging: Lagging) -> None:
    """It is never seen at the end: that is where it was told of two seconds ago."""
    await lagging.look(end=10, position=0, now_ms=1_000)
    assert await lagging.look(end=20, position=10, now_ms=3_000) == 2_000
    assert await lagging.look(end=30, position=20, now_ms=5_000) == 2_000


async def test_a_group_that_stands_still_lags_longer_and_longer(lagging: Lagging) -> None:
    await lagging.look(end=10, position=10, now_ms=1_000)
    assert await lagging.look(end=11, position=10, now_ms=3_000) == 2_000
    assert await lagging.look(end=11, position=10, now_ms=61_000) == 60_000


async def test_a_position_that_is_gone_is_forgotten(lagging: Lagging) -> None:
    await lagging.look(end=10, position=10, now_ms=1_000)
    lagging.groups.positions.clear()
    await lagging.lags.look()
    lagging.partition.source.hear(11, 11, 0, 2_000)
    assert lagging.lags.lag_ms(("g", *PLACE), 10, lagging.partition, 2_000) is None
