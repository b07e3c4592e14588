"""Which promotion ended a flow, read from journals; and the bounds that follow."""

import json
from typing import Any
from uuid import UUID

import pytest

from spark_audit.snapshot.bounds import EMPTY_LOG, LogBounds, join_bounds
from spark_audit.snapshot.seals import CannotTell, Promotion, Seal, promotion_of
from spark_audit.snapshot.side import Side
from wire.topic_partition import TopicPartition


def _journal(epoch: int, **changes: Any) -> bytes:
    ends = {"topic": "t", "partition": 0, "mirrored_source_end": 7, "target_end": 5}
    document = {
        "epoch": epoch,
        "site": "dc2",
        "source": "dc1",
        "kind": "planned",
        "state": "done",
        "direction": "forward",
        "partitions": [{**ends, "source_end": None}],
    }
    return json.dumps({**document, **changes}).encode()


def _promotion(*journals: bytes) -> Promotion | None:
    return promotion_of(journals, source="dc1", target="dc2")


def test_without_a_promotion_nothing_is_sealed() -> None:
    assert _promotion() is None


def test_a_promotion_seals_each_partition_where_its_journal_says() -> None:
    promotion = _promotion(_journal(3))
    assert promotion is not None
    assert promotion.epoch == 3
    assert promotion.seal("t", 0) == Seal(mirrored_source_end=7, target_end=5)


def test_a_partition_that_no_journal_lists_was_never_mirrored() -> None:
    promotion = _promotion(_journal(3))
    assert promotion is not None
    assert promotion.seal("t", 1) == Seal(mirrored_source_end=0, target_end=0)


def test_one_that_is_under_way_counts_from_its_seal_on() -> None:
    assert _promotion(_journal(3, state="running", partitions=[])) is None
    promotion = _promotion(_journal(3, state="running"))
    assert promotion is not None


@pytest.mark.parametrize("changes", [{"state": "rolled-back"}, {"direction": "back"}])
def test_one_that_is_rolled_back_counts_for_nothing(changes: dict[str, str]) -> None:
    assert _promotion(_journal(3, **changes)) is None


def test_the_last_of_several_counts() -> None:
    promotion = _promotion(_journal(12), _journal(3, state="rolled-back"))
    assert promotion is not None
    assert promotion.epoch == 12


def test_a_promotion_of_the_other_direction_is_no_concern() -> None:
    assert _promotion(_journal(3, site="dc1", source="dc2")) is None


def test_a_flow_that_was_failed_back_cannot_be_told() -> None:
    with pytest.raises(CannotTell, match="promotion 4 went back to dc1 after promotion 3"):
        _promotion(_journal(3), _journal(4, site="dc1", source="dc2"))


def test_where_the_way_back_is_told_apart_a_flow_goes_on_behind_a_failback() -> None:
    def sealed(*journals: bytes) -> int | None:
        found = promotion_of(journals, source="dc1", target="dc2", is_both_ways=True)
        return None if found is None else found.epoch

    back = _journal(4, site="dc1", source="dc2")
    assert sealed(_journal(3), back) is None
    assert sealed(_journal(3), back, _journal(5)) == 5
    assert sealed(_journal(3), _journal(4, site="dc1", source="dc2", partitions=[])) == 3
    assert sealed(_journal(3), _journal(4, site="dc1", source="dc2", state="rolled-back")) == 3


@pytest.mark.parametrize(
    "garbled", [b"{", b"3", b"{}", _journal(3, partitions=[{"topic": "t"}])], ids=str
)
def test_a_garbled_journal_cannot_be_told(garbled: bytes) -> None:
    with pytest.raises(CannotTell, match="witness"):
        _promotion(garbled)


def _log(start: int, stop: int) -> LogBounds:
    return LogBounds(start=start, stop=stop, topic_id=UUID(int=1), is_compacted=False)


def test_the_seal_parts_what_was_mirrored_from_what_applications_wrote() -> None:
    (bounds,) = join_bounds(
        {TopicPartition("t", 0): _log(2, 9)},
        {TopicPartition("t", 0): _log(0, 8)},
        _promotion(_journal(3)),
    )
    assert bounds.side(Side.SOURCE)[1:] == (2, 9)
    assert bounds.side(Side.TARGET)[1:] == (0, 5)
    assert bounds.side(Side.NATIVE)[1:] == (5, 8)


def test_without_a_promotion_all_of_the_target_is_mirrored() -> None:
    (bounds,) = join_bounds(
        {TopicPartition("t", 0): _log(0, 9)}, {TopicPartition("t", 0): _log(0, 8)}, None
    )
    assert bounds.side(Side.TARGET)[1:] == (0, 8)
    assert bounds.side(Side.NATIVE)[1:] == (8, 8)


def test_partitions_of_either_side_are_looked_at_but_only_topics_of_the_source() -> None:
    source = {TopicPartition("t", 0): _log(0, 1), TopicPartition("t", 1): _log(0, 1)}
    target = {
        TopicPartition("t", 1): _log(0, 1),
        TopicPartition("t", 2): _log(0, 1),
        TopicPartition("native", 0): _log(0, 1),
    }
    found = join_bounds(source, target, None)
    assert [(one.topic, one.partition) for one in found] == [("t", 0), ("t", 1), ("t", 2)]
    assert found[0].target is EMPTY_LOG
    assert found[2].source is EMPTY_LOG
