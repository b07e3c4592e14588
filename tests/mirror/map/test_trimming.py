"""A map forgets what is gone on both sides, in its topic as well as in memory."""

from pathlib import Path
from uuid import UUID

import pytest

from mirror.clusters.links import Links
from mirror.clusters.tail_reader import TailReader
from mirror.map.map_log import MapLog
from mirror.map.trimming import MapTrimmer
from mirror.state.partition import MirroredPartition
from offset_translation.map_records import map_topic_name, piece_start, run_start
from offset_translation.map_state import MapState
from offset_translation.runs import Place
from offset_translation.translation import translate
from tests.clusters import run_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from wire.net import open_cluster
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.integration

PIECES = 6_000
"""More than go into one write."""
PLACE = TopicPartition("t", 0)


async def test_what_a_map_forgets_stays_forgotten_and_the_rest_is_as_it_was(
    tmp_path: Path,
) -> None:
    with run_cluster(tmp_path, name="dc2", shares_zookeeper=True) as cluster:
        async with open_cluster(cluster.addresses, client_id="test") as client:
            links = Links(
                source_data=client,
                source_groups=client,
                source_admin=client,
                target_data=client,
                target_admin=client,
            )
            map_log = MapLog(client, "dc1", None, MemoryWriters())
            await map_log.load()
            records = [
                piece_start(*PLACE, source_start=3 * n, place=Place(2 * n)) for n in range(PIECES)
            ]
            await map_log.write(
                lambda: [*records, run_start(*PLACE, place=Place(70), target_start=75)]
            )
            offset_map = map_log.state.maps[PLACE]
            offset_map.advance(2 * PIECES + 5)
            before = [translate(offset_map, offset) for offset in range(3 * PIECES)]
            partition = MirroredPartition(
                *PLACE, topic_id=UUID(int=1), offset_map=offset_map, now_ms=0
            )
            trimmer = MapTrimmer(CONFIG, {PLACE: partition}, links, map_log)
            await trimmer.trim({PLACE: 3 * 5_900}, {PLACE: 2 * 5_500 + 5})
            await trimmer.trim({PLACE: 3 * 5_900}, {PLACE: 2 * 5_500 + 5})
            reader = TailReader(client, map_topic_name("dc1"))
            written = [(record.key, record.value) async for _, record in reader.read_new()]
    assert len(list(offset_map.pieces())) == PIECES - 5_500
    state = MapState()
    keys: dict[bytes | None, bytes | None] = {}
    for key, value in written:
        state.replay(key, value)
        keys[key] = value
    compacted = MapState()
    for key, value in keys.items():
        if value is not None:
            compacted.replay(key, value)
    for found in (state, compacted):
        found.advance({PLACE: 2 * PIECES + 5})
        assert found.rejected == []
        again = [translate(found.maps[PLACE], offset) for offset in range(3 * PIECES)]
        assert again[3 * 5_500 + 1 :] == before[3 * 5_500 + 1 :]
    assert len(keys) - sum(value is None for value in keys.values()) < PIECES - 5_500 + 10
