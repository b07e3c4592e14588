"""Keys of map records by the names of another site."""

import pytest

from offset_translation import map_records
from offset_translation.map_records import decode_key, encode_key
from offset_translation.renamed_keys import renamed
from offset_translation.runs import Place

BACK = {"orders-eu": "orders"}.get
PLACE = {"partition": 3}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (map_records.PieceStartKey, {**PLACE, "place": Place(7)}),
        (map_records.SealKey, {**PLACE, "target_end": 7}),
        (map_records.RunStartKey, {**PLACE, "place": Place(7)}),
        (map_records.SetAsideKey, {**PLACE, "source_start": 7}),
        (map_records.ReachedKey, PLACE),
        (map_records.TrimmedKey, PLACE),
        (map_records.TargetTopicKey, PLACE),
        (map_records.StartDueKey, PLACE),
        (map_records.BegunKey, PLACE),
        (map_records.SourceTopicKey, {}),
    ],
)
def test_a_key_of_a_topic_gets_its_other_name_and_one_of_others_is_left_out(
    kind: type, fields: dict[str, int]
) -> None:
    there = encode_key(kind(topic="orders-eu", **fields))
    here = renamed(there, BACK)
    assert here is not None
    assert decode_key(here) == kind(topic="orders", **fields)
    assert renamed(encode_key(kind(topic="orders", **fields)), BACK) is None


@pytest.mark.parametrize(
    "key",
    [
        encode_key(map_records.MirrorProducerKey(producer_id=7)),
        encode_key(map_records.FlowBegunKey(registry="r", topic_set="")),
        encode_key(map_records.WriterKey(bytes(16))),
        b"garbage",
        None,
    ],
)
def test_a_key_of_no_topic_stays_as_it_is(key: bytes | None) -> None:
    assert renamed(key, BACK) == key
