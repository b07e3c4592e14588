"""Batches of the mirror and of others on a target, and the map that goes with them."""

from offset_translation.map_records import (
    MirrorProducer,
    map_topic_name,
    mirror_producer,
    piece_start,
)
from offset_translation.runs import Place
from tests.doubles.fake_cluster import FakeCluster, FakePartition
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

ORDERS = TopicPartition("orders", 0)
MIRROR, OTHER = 7, 8
PIECE = piece_start(*ORDERS, source_start=0, place=Place(0))


def write(
    log: FakePartition,
    values: str,
    producer_id: int = OTHER,
    *,
    sequence: int = 0,
    is_control: bool = False,
) -> None:
    """Append a batch with a record for each letter."""
    log.batches.append(
        build_batch(
            [Record(number, 0, None, value.encode()) for number, value in enumerate(values)],
            base_offset=log.end,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_control=is_control,
        )
    )
    log.end += len(values)


def tell(cluster: FakeCluster, *said: tuple[bytes, bytes]) -> None:
    """The map topic, of which this is all."""
    map_log = cluster.create_topic(map_topic_name("dc1"), 0).partitions[0]
    records = (mirror_producer(MirrorProducer(producer_id=MIRROR, producer_epoch=0)), *said)
    map_log.batches.append(build_batch(Record(n, 0, *one) for n, one in enumerate(records)))
    map_log.end = len(records)
