"""Behind a switch a member reads once it has asked where its group stands."""

import pytest

from failover.bootstrap.arrivals import (
    GUARDED_FOR_S,
    RECENT_MS,
    ArrivedClient,
    ClientArrivals,
    look_again,
    may_be_amid_switch,
)
from wire.errors import ErrorCode
from wire.headers import RequestHeader, decode_response, encode_request
from wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

ONE, OTHER = ArrivedClient("10.0.0.1", "shop"), ArrivedClient("10.0.0.2", "shop")


def test_before_any_switch_everybody_reads() -> None:
    assert ClientArrivals().may_read(ONE, now=0)


def test_behind_a_switch_who_has_asked_reads_and_others_once_they_had_the_time() -> None:
    arrivals = ClientArrivals()
    arrivals.begin(now=100)
    assert not arrivals.may_read(ONE, now=101)
    arrivals.note(ONE, now=101)
    assert arrivals.may_read(ONE, now=101)
    assert not arrivals.may_read(OTHER, now=101)
    assert arrivals.may_read(OTHER, now=100 + GUARDED_FOR_S)


def test_what_is_remembered_of_clients_is_bounded_and_the_others_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("failover.bootstrap.arrivals.MOST", 1)
    arrivals, long = ClientArrivals(), ArrivedClient("10.0.0.1", "x" * 256)
    arrivals.begin(now=100)
    for client in (long, ONE, OTHER):
        arrivals.note(client, now=101)
    assert [arrivals.may_read(client, now=102) for client in (long, ONE, OTHER)] == [
        False,
        True,
        False,
    ]
    assert arrivals.may_read(OTHER, now=100 + GUARDED_FOR_S)


def test_at_the_next_switch_everybody_asks_anew() -> None:
    arrivals = ClientArrivals()
    arrivals.begin(now=100)
    arrivals.note(ONE, now=101)
    arrivals.begin(now=102)
    assert not arrivals.may_read(ONE, now=103)


@pytest.mark.parametrize("version", range(4, 13))
def test_who_has_not_asked_is_told_to_look_for_the_leader_again(version: int) -> None:
    partition = FetchPartition(partition=3, fetch_offset=5, partition_max_bytes=1)
    topic = FetchTopic(topic="t", partitions=(partition,))
    request = FetchRequest(max_wait_ms=1, min_bytes=1, topics=(topic,))
    header = RequestHeader(api_key=1, api_version=version, correlation_id=9, client_id="me")
    frame = look_again(b"".join(encode_request(header, request))[4:])
    answer = decode_response(FetchResponse, frame[4:], version)
    (told,) = answer.responses
    assert told.topic == "t"
    assert [(one.partition_index, one.error_code) for one in told.partitions] == [
        (3, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    ]


def test_a_session_of_the_old_site_is_begun_anew() -> None:
    request = FetchRequest(max_wait_ms=1, min_bytes=1, session_id=7, session_epoch=4, topics=())
    header = RequestHeader(api_key=1, api_version=12, correlation_id=9, client_id="me")
    frame = look_again(b"".join(encode_request(header, request))[4:])
    answer = decode_response(FetchResponse, frame[4:], 12)
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_an_endpoint_that_begins_amid_a_switch_has_members_ask_as_those_that_saw_it() -> None:
    assert may_be_amid_switch(written_ms=100_000, now_ms=100_000 + RECENT_MS - 1)
    assert not may_be_amid_switch(written_ms=100_000, now_ms=100_000 + RECENT_MS)
    assert may_be_amid_switch(written_ms=100_000, now_ms=99_000), "by another clock"
    assert RECENT_MS > 1_000 * GUARDED_FOR_S
