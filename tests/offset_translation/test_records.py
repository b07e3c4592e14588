"""The byte formats of the map and checkpoint topics."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offset_translation import checkpoint, map_records
from offset_translation.binary import MalformedRecord
from offset_translation.map_records import MirrorProducer, Seal
from offset_translation.map_state import MapState
from offset_translation.runs import Place
from tests.offset_translation.strategies import INT32, INT64, TOPICS
from wire.topic_partition import TopicPartition


@given(
    st.one_of(
        st.builds(map_records.PieceStartKey, topic=TOPICS, partition=INT32, place=INT64),
        st.builds(map_records.SealKey, topic=TOPICS, partition=INT32, target_end=INT64),
        st.builds(map_records.MirrorProducerKey, producer_id=INT64),
        st.builds(map_records.SourceTopicKey, topic=TOPICS),
        st.builds(map_records.FlowBegunKey, registry=TOPICS, topic_set=TOPICS),
        st.builds(map_records.StartDueKey, topic=TOPICS, partition=INT32),
        st.builds(map_records.BegunKey, topic=TOPICS, partition=INT32),
    )
)
def test_keys_survive_the_round_trip(key: map_records.MapKey) -> None:
    assert map_records.decode_key(map_records.encode_key(key)) == key


@given(
    st.builds(
        map_records.Begun,
        source_start=INT64,
        target_start=INT64,
        topic_id=st.uuids(),
        start=TOPICS,
    ),
    TOPICS,
)
def test_where_a_partition_was_begun_is_said_again_as_it_was_written(
    begun: map_records.Begun, topic: str
) -> None:
    state = MapState()
    records = [
        map_records.begun(topic, 3, begun),
        map_records.start_due(topic, 4, begun.topic_id),
        map_records.flow_begun(topic, None, begun.source_start),
    ]
    for record in records:
        state.replay(*record)
    assert state.begins.of(TopicPartition(topic, 3), begun.topic_id) == begun
    assert [state.records_of(key) for key, _ in records] == [[one] for one in records]
    for key, _ in records:
        state.replay(key, None)
    assert [state.records_of(key) for key, _ in records] == [[], [], []]


def test_another_pair_that_begins_in_the_same_topic_takes_nobodys_record_away() -> None:
    """A cleaner keeps the last record of a key, and the mirror of each would write its own anew."""
    ours, theirs = (map_records.flow_begun(one * 16, None, 5)[0] for one in ("ab", "cd"))
    assert ours != theirs


@given(
    st.builds(
        checkpoint.Checkpoint,
        group=TOPICS,
        topic=TOPICS,
        partition=INT32,
        upstream_offset=INT64,
        downstream_offset=INT64,
        metadata=TOPICS,
    )
)
def test_checkpoints_survive_the_round_trip(one: checkpoint.Checkpoint) -> None:
    assert checkpoint.decode(*checkpoint.encode(one)) == one


def test_a_checkpoint_is_written_as_mirrormaker_does() -> None:
    one = checkpoint.Checkpoint(
        group="g", topic="orders", partition=3, upstream_offset=258, downstream_offset=7
    )
    assert checkpoint.encode(one) == (
        b"\0\1g\0\6orders\0\0\0\3",
        b"\0\0" + b"\0\0\0\0\0\0\1\2" + b"\0\0\0\0\0\0\0\7" + b"\0\0",
    )


def test_a_piece_start_is_written_as_documented() -> None:
    assert map_records.piece_start("t", 2, source_start=10, place=Place(6)) == (
        b"\0\0" + b"\0\1t" + b"\0\0\0\2" + b"\0\0\0\0\0\0\0\6",
        b"\0\0" + b"\0\0\0\0\0\0\0\x0a",
    )


def test_the_state_holds_what_the_topic_says() -> None:
    topic_id = UUID(int=77)
    state = MapState()
    state.replay(*map_records.mirror_producer(MirrorProducer(producer_id=4, producer_epoch=0)))
    state.replay(*map_records.mirror_producer(MirrorProducer(producer_id=9, producer_epoch=1)))
    state.replay(*map_records.source_topic("t", topic_id))
    state.replay(*map_records.piece_start("t", 0, source_start=0, place=Place(0)))
    state.replay(*map_records.seal("t", 0, source_end=8, target_end=8))
    assert state.producer == MirrorProducer(producer_id=9, producer_epoch=1)
    assert state.producer_ids == {4, 9}
    assert state.topic_ids == {"t": topic_id}
    assert state.seals == {("t", 0): Seal(source_end=8, target_end=8)}
    state.replay(
        map_records.encode_key(map_records.SealKey(topic="t", partition=0, target_end=8)), None
    )
    assert state.seals == {}
    state.advance({TopicPartition("t", 0): 12})
    assert state.maps[TopicPartition("t", 0)].mirrored_source_end == 12


@pytest.mark.parametrize(
    "key",
    [None, b"", b"\0", b"\0\x63", b"\0\0\0\1t", b"\0\0\x7f\xfft", b"\0\3\0\1t!", b"\0\3\0\1\xff"],
)
def test_a_foreign_record_is_counted_and_left_out(key: bytes | None) -> None:
    state = MapState()
    state.replay(key, b"whatever")
    assert len(state.rejected) == 1
    assert state.maps == {}


def test_a_piece_that_goes_back_is_counted_and_left_out() -> None:
    state = MapState()
    state.replay(*map_records.piece_start("t", 0, source_start=10, place=Place(0)))
    state.replay(*map_records.piece_start("t", 0, source_start=12, place=Place(5)))
    state.advance({TopicPartition("t", 0): 5})
    assert len(state.rejected) == 1
    assert state.maps[TopicPartition("t", 0)].mirrored_source_end == 15


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_garbage_is_refused_by_name(key: bytes, value: bytes) -> None:
    state = MapState()
    state.replay(key, value)
    try:
        checkpoint.decode(key, value)
    except MalformedRecord:
        return


def test_offsets_that_were_set_aside_are_kept_until_they_are_taken_back() -> None:
    state = MapState()
    key, value = map_records.set_aside("t", 1, source_start=20, source_end=25)
    state.replay(key, value)
    assert state.set_aside == {("t", 1): {20: 25}}
    state.replay(key, None)
    assert state.set_aside == {("t", 1): {}}
