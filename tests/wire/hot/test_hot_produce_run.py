"""Runs of plain Produce requests, against the schema codec."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.runs import frame_of, plain_frame, plain_request
from tests.properties import examples
from wire.headers import encode_response
from wire.hot.produce import BY_HAND
from wire.hot.produce_run import MOST_BATCHES, PlainBatch, ProduceRun, answer_frames, read_run
from wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from wire.record_batch import Record, build_batch, parse_header, stamp_append_time
from wire.request_headers import decode_request_header
from wire.schema import decode_prefix

LARGEST = 100_000
TEXTS = st.text(max_size=20)


def read(data: bytes, most: int = 1_000) -> ProduceRun | None:
    return read_run(memoryview(data), 0, len(data), LARGEST, most)


@settings(max_examples=examples(20))
@given(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    client_id=st.none() | TEXTS,
    topic=TEXTS,
    version=st.sampled_from(BY_HAND),
    acks=st.integers(-2, 2),
)
def test_a_run_is_what_the_schema_codec_reads(
    counts: list[int], client_id: str | None, topic: str, version: int, acks: int
) -> None:
    meant = [plain_request(topic, count, acks=acks) for count in counts]
    frames = [frame_of(one, 7 + n, client_id, version) for n, one in enumerate(meant)]
    data = b"before" + b"".join(frames) + b"\0\0\0\1"
    view = memoryview(data)
    run = read_run(view, 6, len(data), LARGEST, 1_000)
    assert run is not None
    assert run.end == len(data) - 4
    assert (run.client_id, run.version, run.acks) == (client_id, version, acks)
    assert [one.correlation_id for one in run.requests] == [7 + n for n in range(len(meant))]
    at = 6
    for frame, request in zip(frames, run.requests, strict=True):
        body = view[at + 4 : at + len(frame)]
        header, position = decode_request_header(body)
        whole, _ = decode_prefix(ProduceRequest, body, header.api_version, position)
        assert (whole.acks, whole.timeout_ms) == (run.acks, run.timeout_ms)
        [data_of] = whole.topic_data
        assert data_of.name == run.topic
        assert [described(view, one) for one in request.batches] == [
            (one.index, one.records) for one in data_of.partition_data
        ]
        at += len(frame)


def described(view: memoryview, one: PlainBatch) -> tuple[int, memoryview]:
    """Return a batch's partition and bytes; what is said of it is what stands in its header."""
    header = parse_header(view, one.start)
    assert one == PlainBatch(
        one.partition,
        one.start,
        header.batch_bytes,
        header.record_count,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    )
    return one.partition, view[one.start : one.start + one.size]


def batch(**fields: int | bool) -> bytes:
    return build_batch([Record(0, 5, None, b"value")], **fields)  # type: ignore[arg-type]


def stamped() -> bytes:
    made = bytearray(batch())
    stamp_append_time(made, 77)
    return bytes(made)


def with_records(records: bytes | None) -> bytes:
    data = PartitionProduceData(index=0, records=records)
    request = replace(
        plain_request("t", 1), topic_data=(TopicProduceData(name="t", partition_data=(data,)),)
    )
    return frame_of(request, 1, "test", 9)


def changed(change: Callable[[ProduceRequest], ProduceRequest]) -> bytes:
    return frame_of(change(plain_request("t", 1)), 1, "test", 9)


TWO_TOPICS = plain_request("t", 1).topic_data * 2


@pytest.mark.parametrize(
    "odd",
    [
        frame_of(plain_request("t", 1), 1, "test", 8),
        frame_of(plain_request("t", 1), 1, "other", 9),
        frame_of(plain_request("t", 1), 1, None, 9),
        frame_of(plain_request("t", 1), 1, "test", 10),
        frame_of(plain_request("u", 1), 1, "test", 9),
        frame_of(plain_request("t", 1, acks=1), 1, "test", 9),
        frame_of(plain_request("t", MOST_BATCHES + 1), 1, "test", 9),
        changed(lambda one: replace(one, timeout_ms=9)),
        changed(lambda one: replace(one, transactional_id="mine")),
        changed(lambda one: replace(one, topic_data=())),
        changed(lambda one: replace(one, topic_data=TWO_TOPICS)),
        plain_frame()[:4] + b"\0\1" + plain_frame()[6:],
        (len(plain_frame()) - 3).to_bytes(4) + plain_frame()[4:] + b"\0",
        b"\xff\xff\xff\xff" + plain_frame()[4:],
        with_records(None),
        with_records(b""),
        with_records(batch()[:-1]),
        with_records(batch() + b"\0"),
        with_records(batch()[:-1] + b"\1"),
        with_records(batch(base_offset=1)),
        with_records(stamped()),
        with_records(batch(is_control=True)),
        with_records(batch(is_transactional=True, producer_id=1, base_sequence=0)),
        with_records(batch(producer_id=1)),
    ],
)
def test_what_is_not_plain_or_of_another_kind_ends_the_run(odd: bytes) -> None:
    plain = plain_frame()
    run = read(plain + odd + plain)
    assert run is not None
    assert (run.end, len(run.requests)) == (len(plain), 1)
    assert read(plain[:-1]) is None


def test_a_run_has_so_many_requests_at_most_and_none_beyond_the_limit_of_a_frame() -> None:
    frame = plain_frame()
    run = read(frame * 5, most=3)
    assert run is not None
    assert (run.end, len(run.requests)) == (3 * len(frame), 3)
    assert read_run(memoryview(frame), 0, len(frame), len(frame) - 5, 9) is None
    assert read_run(memoryview(frame), 0, len(frame), len(frame) - 4, 9) is not None


@pytest.mark.parametrize("version", BY_HAND)
def test_answers_are_those_of_the_schema_codec(version: int) -> None:
    frames = [frame_of(plain_request("orders", count), count, "c", version) for count in (1, 3)]
    run = read(b"".join(frames))
    assert run is not None
    places = [(1000 + one, one) for one in range(4)]
    expected = []
    following = iter(places)
    for count in (1, 3):
        answers = tuple(
            PartitionProduceResponse(
                index=index, error_code=0, base_offset=base, log_start_offset=start
            )
            for index, (base, start) in zip(range(count), following)  # noqa: B905
        )
        answer = ProduceResponse(
            responses=(TopicProduceResponse(name="orders", partition_responses=answers),)
        )
        expected.append(b"".join(encode_response(count, answer, version)))
    assert list(answer_frames(run, iter(places))) == expected
