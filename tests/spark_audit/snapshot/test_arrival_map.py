"""What a map holds of writers that the witness does not know is named, where it would matter."""

import pytest

from offset_translation.map_records import map_topic_name, piece_start
from offset_translation.runs import Place
from runtime.coordination.map_writers import MapWriters
from spark_audit.snapshot.arrival_map import MapOf, read_map
from spark_audit.snapshot.seals import CannotTell
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from wire.net import open_cluster
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

ORDERS = TopicPartition("orders", 0)
KNOWN, LATER = 3, 4
PIECE = piece_start(*ORDERS, source_start=0, place=Place(0))


async def test_a_map_that_was_written_and_is_gone_is_not_one_that_never_was() -> None:
    """What the other site has brought would be called the site's own."""
    writers = MemoryWriters(is_strict=True)
    writers.known = MapWriters(registered={KNOWN: 0})
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        with pytest.raises(CannotTell, match=r"^cluster dc2: dc1\.offset-map\.internal: "):
            await read_map(cluster, MapOf("dc1"), writers, name="dc2", partitions=[ORDERS])


@pytest.mark.parametrize(
    ("said", "is_named"),
    [
        (piece_start(*ORDERS, source_start=9, place=Place(4)), True),
        (PIECE, False),
        (piece_start("another pair's", 0, source_start=0, place=Place(0)), False),
        ((b"no map's", b""), False),
    ],
    ids=["says else", "says it again", "another pair's", "nonsense"],
)
async def test_what_is_not_believed_is_named_where_it_says_something_else(
    said: tuple[bytes, bytes], *, is_named: bool
) -> None:
    writers = MemoryWriters(is_strict=True)
    writers.known = MapWriters(registered={KNOWN: 0})
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        log = fake.create_topic(map_topic_name("dc1"), 0).partitions[0]
        for writer, record in ((KNOWN, PIECE), (LATER, said)):
            batch = build_batch([Record(0, 0, *record)], base_offset=log.end, producer_id=writer)
            log.batches.append(batch)
            log.end += 1
        found = await read_map(cluster, MapOf("dc1"), writers, name="dc2", partitions=[ORDERS])
    assert len(found.state.maps[ORDERS]) == 1
    assert (found.unbelieved is not None) == is_named
    if is_named:
        assert found.unbelieved == (
            "dc2 dc1.offset-map.internal holds 1 records that are not believed, as the witness does"
            " not know their writers (1 of producer id 4, from offset 1 on); if they are the"
            " mirror's own, `failover recover --believe-maps --write` has them believed"
        )
