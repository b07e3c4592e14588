"""What a client is told that it may ask for, where its connections are forwarded."""

import pytest

from failover.bootstrap.spoken import (
    CARRIED,
    NEW_GROUPS,
    NotCarried,
    is_too_new,
    limited,
    require_carried,
    too_new_answer,
)
from tests.failover.bootstrap.layouts import field_names
from wire.errors import ErrorCode
from wire.headers import decode_response
from wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from wire.messages.table import APIS
from wire.schema.plan import top_level

PRODUCE, FETCH, METADATA, SASL_HANDSHAKE, VERSIONS, ADD_PARTITIONS, UNKNOWN = (
    0,
    1,
    3,
    17,
    18,
    24,
    9_999,
)


def named(*ranges: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    answer = ApiVersionsResponse(
        error_code=0,
        api_keys=tuple(ApiVersion(api_key=k, min_version=a, max_version=b) for k, a, b in ranges),
    )
    return [(each.api_key, each.min_version, each.max_version) for each in limited(answer).api_keys]


def test_versions_whose_answers_hold_addresses_or_topic_ids_are_not_named() -> None:
    assert named((PRODUCE, 0, 13), (FETCH, 4, 18)) == [(PRODUCE, 0, 9), (FETCH, 4, 12)]


def test_clients_are_offered_no_version_by_which_they_hold_leader_epochs_for_reliable() -> None:
    """They are not shown: librdkafka then claims epoch 0, which a later leader refuses for ever."""
    assert named((METADATA, 0, 13)) == [(METADATA, 0, 8)]


@pytest.mark.parametrize("message", ["request", "response"])
def test_no_client_that_reads_or_writes_hears_of_topic_ids(message: str) -> None:
    """Those that make or delete topics by id do not keep it."""
    hearing = set()
    for key, versions in CARRIED.items():
        for version in versions:
            cls = APIS[key] if message == "request" else APIS[key].RESPONSE
            if any(name.startswith("topic_id") for name in field_names(top_level(cls, version))):
                hearing.add(APIS[key].__name__)
    assert hearing <= {"CreateTopicsRequest", "DeleteTopicsRequest"}


def test_what_an_older_broker_speaks_is_named_as_it_is() -> None:
    assert named((PRODUCE, 0, 7), (FETCH, 0, 11)) == [(PRODUCE, 0, 7), (FETCH, 0, 11)]


def test_apis_of_which_nothing_is_known_and_versions_without_a_common_one_are_not_named() -> None:
    assert named((UNKNOWN, 0, 3), (ADD_PARTITIONS, 0, 5), (FETCH, 13, 18)) == []


def test_a_handshake_that_is_not_carried_is_named_for_older_clients_that_look_for_it() -> None:
    assert named((SASL_HANDSHAKE, 0, 1)) == [(SASL_HANDSHAKE, 0, 1)]
    with pytest.raises(NotCarried, match="version 0"):
        require_carried(SASL_HANDSHAKE, 0)


def test_the_new_group_protocol_is_named_so_that_its_members_hear_that_it_is_refused() -> None:
    assert named((NEW_GROUPS, 0, 1)) == [(NEW_GROUPS, 0, 1)]
    assert named((NEW_GROUPS, 0, 9)) == [(NEW_GROUPS, 0, 1)]
    require_carried(NEW_GROUPS, 1)
    assert NEW_GROUPS not in CARRIED


def test_what_is_not_named_is_not_carried() -> None:
    require_carried(PRODUCE, 9)
    for key, version in ((PRODUCE, 10), (FETCH, 13), (UNKNOWN, 0), (PRODUCE, -1)):
        with pytest.raises(NotCarried, match="does not name it"):
            require_carried(key, version)
    with pytest.raises(NotCarried, match="transactions are not carried"):
        require_carried(ADD_PARTITIONS, 0)


def test_a_newer_question_for_versions_is_answered_with_those_that_are_known() -> None:
    newest = CARRIED[VERSIONS].stop - 1
    assert is_too_new(VERSIONS, newest + 1)
    assert not is_too_new(VERSIONS, newest)
    frame = too_new_answer(7)
    answer = decode_response(ApiVersionsResponse, frame[4:], newest + 1)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(each.api_key, each.max_version) for each in answer.api_keys] == [(VERSIONS, newest)]
