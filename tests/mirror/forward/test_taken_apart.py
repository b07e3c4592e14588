"""Of a batch that the target refuses only those records are left out that it refuses alone."""

from dataclasses import replace

import pytest

from mirror.state.partition_state import PartitionState
from runtime.configuration.flow_section import Policy
from tests.doubles.fake_answers import ANSWERS
from tests.mirror.whole_flow import WholeFlow, until, values, whole_flow
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from wire.record_batch import Record, build_batch, iterate_records, parse_header

COUNT = 40
BAD = 17


def log() -> list[bytes]:
    records = [Record(at, 0, None if at == BAD else b"k", b"v%d" % at) for at in range(COUNT)]
    return [build_batch(records)]


def refuse(whole: WholeFlow, code: ErrorCode, *, most_records: int) -> None:
    """Let the target refuse keyless records, or batches of more records, and wrong sequences."""
    broker = whole.dc2.brokers[0]

    async def answer(header: RequestHeader, request: ProduceRequest) -> ProduceResponse:
        [topic] = request.topic_data
        data = topic.partition_data[0].records
        assert isinstance(data, bytes | bytearray | memoryview)
        batch = bytes(data)
        records = list(iterate_records(batch))
        has_bad = code is ErrorCode.INVALID_RECORD and any(one.key is None for one in records)
        is_next = parse_header(batch).base_sequence == whole.target.end
        if topic.name != "t" or (is_next and not has_bad and len(records) <= most_records):
            taken: ProduceResponse = ANSWERS[header.api_key](broker, header.api_version, request)
            return taken
        refused = PartitionProduceResponse(
            index=0,
            error_code=code if is_next else 45,
            base_offset=-1,
            record_errors=tuple(
                BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message="no key")
                for at, one in enumerate(records)
                if one.key is None
            ),
        )
        return ProduceResponse(
            responses=(TopicProduceResponse(name="t", partition_responses=(refused,)),)
        )

    broker.scripts[ProduceRequest.API_KEY] = answer


ALL = [b"v%d" % at for at in range(COUNT)]


async def test_a_skip_leaves_out_the_refused_record_and_none_of_its_batch() -> None:
    async with whole_flow(log(), COUNT, chunk_bytes=100_000) as whole:
        whole.flow.take_config(replace(whole.flow.config, policies={"target_refused": Policy.SKIP}))
        refuse(whole, ErrorCode.INVALID_RECORD, most_records=COUNT)
        await until(lambda: len(values(whole.target)) == COUNT - 1)
        assert values(whole.target) == [one for one in ALL if one != b"v%d" % BAD]
        assert whole.partition.skips.count == 1
        await until(lambda: whole.partition.state is PartitionState.STREAMING)
        assert whole.partition.offset_map.mirrored_source_end == COUNT


async def test_without_a_decision_a_refused_record_stops_the_partition() -> None:
    async with whole_flow(log(), COUNT, chunk_bytes=100_000) as whole:
        refuse(whole, ErrorCode.INVALID_RECORD, most_records=COUNT)
        await until(lambda: whole.partition.state is PartitionState.TARGET_REFUSED)
        assert values(whole.target) == []
        assert f"INVALID_RECORD (source offset {BAD}: no key)" in whole.partition.status.reason
        whole.flow.interruptions.skip(whole.partition, COUNT, 0)
        await until(lambda: len(values(whole.target)) == COUNT - 1)
        assert whole.partition.skips.count == 1


@pytest.mark.parametrize("most_records", [1])
async def test_a_batch_that_is_too_large_is_split_and_loses_nothing(most_records: int) -> None:
    async with whole_flow(log(), COUNT, chunk_bytes=100_000) as whole:
        refuse(whole, ErrorCode.MESSAGE_TOO_LARGE, most_records=most_records)
        await until(lambda: values(whole.target) == ALL)
        assert whole.partition.skips.count == 0
