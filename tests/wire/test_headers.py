"""Requests and responses with what stands in front of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.request_header.v1.header import RequestHeader as KioHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as KioHeaderV2
from kio.serial import entity_reader

from wire.errors import ErrorCode
from wire.headers import (
    RequestHeader,
    correlation_id_of,
    decode_response,
    encode_request,
    encode_response,
)
from wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.primitives import MalformedMessage
from wire.request_headers import decode_request_header
from wire.schema import decode

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def framed(parts: list[bytes | memoryview]) -> bytes:
    """Return what was framed; its size must be right."""
    raw = b"".join(parts)
    assert int.from_bytes(raw[:4], "big") == len(raw) - 4
    return raw[4:]


@pytest.mark.parametrize("version", HeartbeatRequest.VERSIONS)
@given(correlation_id=st.integers(-(2**31), 2**31 - 1), client_id=st.none() | st.text(max_size=9))
def test_a_request_round_trips(version: int, correlation_id: int, client_id: str | None) -> None:
    header = RequestHeader(
        api_key=12, api_version=version, correlation_id=correlation_id, client_id=client_id
    )

    raw = framed(encode_request(header, HEARTBEAT))
    decoded, position = decode_request_header(raw)

    assert decoded == header
    assert decode(HeartbeatRequest, raw[position:], version) == HEARTBEAT


@pytest.mark.parametrize(("version", "kio_header"), [(3, KioHeaderV1), (4, KioHeaderV2)])
def test_a_request_header_has_tagged_fields_where_the_message_is_flexible(
    version: int, kio_header: type[KioHeaderV1 | KioHeaderV2]
) -> None:
    header = RequestHeader(api_key=12, api_version=version, correlation_id=7, client_id="me")

    raw = framed(encode_request(header, HEARTBEAT))

    theirs, size = entity_reader(kio_header)(raw, 0)
    assert (theirs.request_api_version, theirs.correlation_id, theirs.client_id) == (
        version,
        7,
        "me",
    )
    assert size == decode_request_header(raw)[1]


def test_a_header_is_read_for_versions_and_apis_that_are_not_known() -> None:
    beyond = bytes.fromhex("0012 0063 00000007 0001 78 00")
    unknown = bytes.fromhex("03e7 0001 00000007 ffff")

    assert decode_request_header(beyond) == (
        RequestHeader(api_key=18, api_version=99, correlation_id=7, client_id="x"),
        len(beyond),
    )
    assert decode_request_header(unknown)[0].api_key == 999


def test_a_header_that_is_cut_off_is_refused() -> None:
    header = RequestHeader(api_key=12, api_version=4, correlation_id=7, client_id="me")
    raw = framed(encode_request(header, HEARTBEAT))
    body = decode_request_header(raw)[1]

    for end in range(body):
        with pytest.raises(MalformedMessage, match="header"):
            decode_request_header(raw[:end])


@pytest.mark.parametrize(("version", "start"), [(3, "00000007"), (4, "0000000700")])
def test_a_response_header_has_tagged_fields_where_the_message_is_flexible(
    version: int, start: str
) -> None:
    response = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, throttle_time_ms=5)

    raw = framed(encode_response(7, response, version))

    assert raw.startswith(bytes.fromhex(start) + b"\x00\x00\x00\x05")
    assert correlation_id_of(raw) == 7
    assert decode_response(HeartbeatResponse, raw, version) == response


@pytest.mark.parametrize("version", ApiVersionsResponse.VERSIONS)
def test_the_header_of_an_api_versions_response_never_has_tagged_fields(version: int) -> None:
    response = ApiVersionsResponse(
        error_code=0, api_keys=(ApiVersion(api_key=1, min_version=0, max_version=17),)
    )

    raw = framed(encode_response(7, response, version))

    assert raw.startswith(bytes.fromhex("00000007 0000"))
    assert decode_response(ApiVersionsResponse, raw, version) == response


def test_an_api_versions_response_that_refuses_the_version_is_read_as_v0() -> None:
    refusal = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=(ApiVersion(api_key=18, min_version=0, max_version=3),),
    )

    raw = framed(encode_response(7, refusal, 0))

    assert decode_response(ApiVersionsResponse, raw, ApiVersionsRequest.VERSIONS[-1]) == refusal


@pytest.mark.parametrize("version", [3, 9])
def test_a_produce_request_carries_records_without_a_copy(version: int) -> None:
    batch = memoryview(bytearray(b"batch"))
    message = ProduceRequest(
        acks=-1,
        timeout_ms=1,
        topic_data=(
            TopicProduceData(
                name="t", partition_data=(PartitionProduceData(index=0, records=batch),)
            ),
        ),
    )
    header = RequestHeader(api_key=0, api_version=version, correlation_id=1, client_id=None)

    parts = encode_request(header, message)

    assert any(isinstance(part, memoryview) and part.obj is batch.obj for part in parts)
    framed(parts)


@pytest.mark.parametrize("raw", [b"", b"\x00\x00\x00", b"\x00\x00\x00\x07"])
def test_a_response_that_is_cut_off_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_response(HeartbeatResponse, raw, 4)


def test_a_response_without_a_correlation_id_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="header: needs 4 bytes, 3 are left"):
        correlation_id_of(b"\x00\x00\x00")
