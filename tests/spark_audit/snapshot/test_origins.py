"""Who brought a record, by the word of the map."""

import pytest

from offset_translation import map_records
from offset_translation.map_records import (
    MirrorProducer,
    MirrorProducerKey,
    PieceStartKey,
    Reached,
    SealKey,
)
from offset_translation.runs import Place
from spark_audit.snapshot.origins import Arrivals, Brought, Part
from wire.record_batch import Record, build_batch, parse_header
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("t", 0)


def _arrivals(*records: tuple[bytes, bytes | None]) -> Arrivals:
    arrivals = Arrivals()
    for record in records:
        arrivals.replay(*record)
    return arrivals


def _brought(arrivals: Arrivals) -> Brought:
    return arrivals.brought([PLACE])[PLACE]


def _producer(producer_id: int) -> tuple[bytes, bytes]:
    return map_records.mirror_producer(MirrorProducer(producer_id=producer_id, producer_epoch=0))


def _seal(target_end: int, partition: int = 0) -> tuple[bytes, bytes]:
    return map_records.seal("t", partition, source_end=5, target_end=target_end)


def _piece(target_start: int) -> tuple[bytes, bytes]:
    return map_records.piece_start("t", 0, source_start=9, place=Place(target_start))


def test_every_producer_id_that_a_mirror_ever_had_is_known() -> None:
    withdrawn = map_records.withdrawal(MirrorProducerKey(producer_id=8))
    arrivals = _arrivals(_producer(7), _producer(8), _producer(9), withdrawn)
    assert _brought(arrivals) == Brought(producer_ids=frozenset({7, 9}))


def test_all_that_lies_between_a_mirrors_begin_and_the_first_promotion_was_brought() -> None:
    arrivals = _arrivals(_piece(12), _piece(3), _seal(70), _seal(40), _seal(20), _seal(3, 1))
    assert _brought(arrivals) == Brought(start=3, stop=20)
    arrivals.replay(*map_records.withdrawal(SealKey(topic="t", partition=0, target_end=20)))
    assert _brought(arrivals).stop == 40, "the promotion of that seal was taken back"


SHARED = map_records.reached("t", 0, Reached(place=Place(3), target_end=4))
"""What a map says of partitions that both sites write to at once."""
WITHDRAWN = map_records.withdrawal(PieceStartKey(topic="t", partition=0, place=Place(3)))


@pytest.mark.parametrize(
    "records",
    [(), ("piece",), ("seal",), ("piece", "seal", SHARED), ("piece", "seal", WITHDRAWN)],
    ids=str,
)
def test_where_that_is_not_known_only_producer_ids_tell(records: tuple[object, ...]) -> None:
    said = {"piece": _piece(3), "seal": _seal(40)}
    arrivals = Arrivals()
    for one in records:
        arrivals.replay(*said.get(one, one))  # type: ignore[call-overload]
    assert _brought(arrivals) == Brought()


def test_what_is_no_record_of_a_map_says_nothing() -> None:
    arrivals = Arrivals()
    arrivals.replay(None, b"")
    arrivals.replay(b"\x00\x63", b"")
    assert _brought(arrivals) == Brought()


def test_each_batch_belongs_to_one_part() -> None:
    brought = Brought(producer_ids=frozenset({7}), start=5, stop=10)
    for offset, producer_id, is_brought in (
        (4, -1, False),
        (9, -1, True),
        (10, -1, False),
        (10, 7, True),
    ):
        batch = build_batch(
            [Record(offset, 1, b"k", b"v")], base_offset=offset, producer_id=producer_id
        )
        header = parse_header(batch)
        assert Part(brought=brought, is_brought=True).takes(header) is is_brought
        assert Part(brought=brought, is_brought=False).takes(header) is not is_brought
