"""What the target refuses is sent again by itself: its limits may have been widened."""

import pytest

from mirror.state.partition_state import ASKED_AGAIN_MS, PartitionState
from tests.doubles.fake_answers import ANSWERS
from tests.mirror.whole_flow import batch_at, until, values, whole_flow
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

LOG = [batch_at(0, b"a"), batch_at(1, b"b")]


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (ErrorCode.MESSAGE_TOO_LARGE, PartitionState.RECORD_TOO_LARGE),
        (ErrorCode.INVALID_TIMESTAMP, PartitionState.TARGET_REFUSED),
    ],
)
async def test_a_target_that_takes_them_now_gets_what_it_has_refused(
    code: ErrorCode, state: PartitionState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ASKED_AGAIN_MS, state, 20)
    refusals = []
    async with whole_flow(list(LOG), 2, chunk_bytes=100_000) as whole:
        broker = whole.dc2.brokers[0]

        async def refuse(header: RequestHeader, request: ProduceRequest) -> ProduceResponse:
            if request.topic_data[0].name != "t":
                answer: ProduceResponse = ANSWERS[header.api_key](
                    broker, header.api_version, request
                )
                return answer
            refusals.append(whole.partition.status)
            refused = PartitionProduceResponse(index=0, error_code=code, base_offset=-1)
            topic = TopicProduceResponse(name="t", partition_responses=(refused,))
            return ProduceResponse(responses=(topic,))

        broker.scripts[ProduceRequest.API_KEY] = refuse
        await until(lambda: len(refusals) > 4 and whole.partition.state is state)
        since_ms = whole.partition.status.since_ms
        seen = len(refusals)
        await until(lambda: len(refusals) > seen and whole.partition.state is state)
        assert whole.partition.status.since_ms == since_ms, "it is the same trouble"
        del broker.scripts[ProduceRequest.API_KEY]
        await until(lambda: values(whole.target) == [b"a", b"b"])
        assert whole.partition.is_flowing
        assert whole.partition.skips.count == 0
