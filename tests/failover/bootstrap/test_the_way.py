"""Which requests are carried, by their first bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.bootstrap.the_way import HEAD, MOST_BYTES, NAMES, NotTheWay, request_bytes
from wire.headers import RequestHeader, encode_request
from wire.messages.metadata import MetadataRequest

PRODUCE, HANDSHAKE = 0, 17


def test_a_real_request_is_as_long_as_its_head_says() -> None:
    header = RequestHeader(api_key=3, api_version=12, correlation_id=7, client_id="me")
    frame = b"".join(encode_request(header, MetadataRequest()))
    assert request_bytes(frame[: HEAD.size]) == len(frame)


@given(st.integers(8, MOST_BYTES), st.sampled_from(sorted(NAMES)), st.integers(1, 20))
def test_what_finds_the_brokers_is_carried(size: int, key: int, version: int) -> None:
    assert request_bytes(HEAD.pack(size, key, version)) == size + 4


@given(st.integers(-(2**15), 2**15 - 1).filter(lambda key: key not in NAMES))
def test_no_other_api_is_carried(key: int) -> None:
    with pytest.raises(NotTheWay, match=f"API {key}: only ApiVersions, DescribeCluster"):
        request_bytes(HEAD.pack(100, key, 1))


@pytest.mark.parametrize("size", [-1, 0, 7, MOST_BYTES + 1, 2**31 - 1])
def test_a_length_that_no_such_request_has_is_refused(size: int) -> None:
    with pytest.raises(NotTheWay, match=f"a request of {size} bytes"):
        request_bytes(HEAD.pack(size, 3, 1))


def test_tokens_without_heads_are_refused_before_they_come() -> None:
    with pytest.raises(NotTheWay, match="SaslHandshake version 0"):
        request_bytes(HEAD.pack(20, HANDSHAKE, 0))


def test_a_head_that_is_cut_off_is_none() -> None:
    with pytest.raises(NotTheWay, match="less than the head"):
        request_bytes(b"\x00\x00\x00\x10")
