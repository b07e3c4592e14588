"""One forwarded connection: what passes, what is changed, and what ends it."""

from contextlib import suppress

import pytest
import trio
from trio.testing import (
    MockClock,
    wait_all_tasks_blocked,
)

from failover.bootstrap.byte_budget import FREE_BYTES
from failover.bootstrap.forwarding import (
    IDLE_S,
    LAST_ANSWERS_S,
    MOST_ANSWER_BYTES,
    MOST_LOGIN_BYTES,
    MOST_MEMBERS,
    MOST_UNDER_WAY,
    STALLED_S,
)
from failover.bootstrap.group_members import GroupMembers, Member
from failover.bootstrap.owned_ids import given
from failover.bootstrap.spoken import NotCarried
from failover.bootstrap.the_way import HEAD
from tests.failover.bootstrap.staged import (
    HEARTBEAT,
    HERE,
    JOIN,
    MIB,
    MOVING,
    THERE,
    answer,
    fetch,
    heard,
    produce,
    produced,
    request,
    staged,
)
from wire.errors import ErrorCode
from wire.headers import decode_response
from wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from wire.messages.offset_fetch import OffsetFetchRequest
from wire.messages.produce import (
    ProduceRequest,
)
from wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from wire.request_headers import decode_request_header


async def test_requests_and_answers_pass_in_order(autojump_clock: MockClock) -> None:
    async with staged(autojump_clock) as stage:
        said = produce(1) + fetch(2) + produce(3, acks=0) + fetch(4)
        await stage.client.send_all(said)
        assert await heard(stage.broker) == said
        answers = produced(ErrorCode.NONE, 1) + answer(EMPTY, 12, 2) + answer(EMPTY, 12, 4)
        for byte in answers[:40]:
            await stage.broker.send_all(bytes([byte]))
        await stage.broker.send_all(answers[40:])
        assert await heard(stage.client) == answers


EMPTY = FetchRequest.RESPONSE(responses=())


async def test_our_answers_wait_for_those_of_the_broker(autojump_clock: MockClock) -> None:
    newer = bytearray(request(ApiVersionsRequest(), 4, 2))
    newer[6:8] = (5).to_bytes(2, "big")
    async with staged(autojump_clock) as stage:
        await stage.client.send_all(fetch(1) + bytes(newer) + fetch(3))
        assert await heard(stage.broker) == fetch(1) + fetch(3)
        assert await heard(stage.client) == b""
        await stage.broker.send_all(answer(EMPTY, 12, 1) + answer(EMPTY, 12, 3))
        told = await heard(stage.client)
        first, last = answer(EMPTY, 12, 1), answer(EMPTY, 12, 3)
        assert told.startswith(first)
        assert told.endswith(last)
        ours = told[len(first) : -len(last)]
        refused = decode_response(ApiVersionsResponse, ours[4:], 5)
        assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_addresses_and_producer_ids_are_changed(autojump_clock: MockClock) -> None:
    async with staged(autojump_clock) as stage:
        asked = request(MetadataRequest(), 8, 1) + request(
            InitProducerIdRequest(transaction_timeout_ms=1), 4, 2
        )
        await stage.client.send_all(asked)
        assert await heard(stage.broker) == asked
        broker = MetadataResponseBroker(node_id=3, host="kafka-3.internal", port=9092)
        await stage.broker.send_all(answer(MetadataResponse(brokers=(broker,), topics=()), 8, 1))
        told = decode_response(MetadataResponse, (await heard(stage.client))[4:], 8)
        assert [(each.host, each.port) for each in told.brokers] == [("kafka.example", 9103)]
        new = InitProducerIdResponse(error_code=0, producer_id=77, producer_epoch=0)
        await stage.broker.send_all(answer(new, 4, 2))
        given_out = decode_response(InitProducerIdResponse, (await heard(stage.client))[4:], 4)
        assert given_out.producer_id == given(77, 1)


async def test_a_broker_without_a_port_is_left_out_and_named_and_the_client_goes_on(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    brokers = tuple(
        MetadataResponseBroker(node_id=node, host="kafka.internal", port=9092) for node in (3, 77)
    )
    async with staged(autojump_clock) as stage:
        await stage.client.send_all(request(MetadataRequest(), 8, 1))
        assert await heard(stage.broker) != b""
        await stage.broker.send_all(answer(MetadataResponse(brokers=brokers, topics=()), 8, 1))
        told = decode_response(MetadataResponse, (await heard(stage.client))[4:], 8)
        assert [each.node_id for each in told.brokers] == [3]
        await stage.client.send_all(fetch(2))
        assert await heard(stage.broker) == fetch(2)
        assert stage.shared.counts.left_out == 1
    assert "dc1: broker 77 has no port: failover.bootstrap.forward.ports" in caplog.text


async def test_a_transactional_producer_is_told_that_it_may_not(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged(autojump_clock) as stage:
        asked = InitProducerIdRequest(transactional_id="pay", transaction_timeout_ms=1)
        await stage.client.send_all(request(asked, 4))
        told = decode_response(InitProducerIdResponse, (await heard(stage.client))[4:], 4)
        assert told.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert await heard(stage.broker) == b""
        assert stage.shared.counts.not_spoken == {"transactions": 1, "new-groups": 0}
    assert " (me): transactions do not go through" in caplog.text, "what to grant is no right"


async def test_a_member_of_a_group_of_the_new_protocol_is_told_to_use_the_other(
    autojump_clock: MockClock,
) -> None:
    async with staged(autojump_clock) as stage:
        joins = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0)
        await stage.client.send_all(request(joins, 1))
        told = decode_response(ConsumerGroupHeartbeatResponse, (await heard(stage.client))[4:], 1)
        assert told.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert "group.protocol=classic" in str(told.error_message)
        assert await heard(stage.broker) == b""


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (request(ProduceRequest(acks=1, timeout_ms=1, topic_data=()), 10), "API 0, version 10"),
        ((128 * MIB + 1).to_bytes(4, "big") + b"\0\0\0\x09", "100 MiB|104857600"),
        ((3).to_bytes(4, "big") + b"\0\0\0\x09", "a request of 3 bytes"),
    ],
)
async def test_what_is_not_carried_ends_the_connection(
    said: bytes, why: str, autojump_clock: MockClock
) -> None:
    async with staged(autojump_clock) as stage:
        await stage.client.send_all(said)
        assert await heard(stage.client) == b""
        (fault,) = stage.faults
        with pytest.raises(NotCarried, match=why):
            raise fault


async def test_a_request_larger_than_what_may_be_held_is_refused(autojump_clock: MockClock) -> None:
    async with staged(autojump_clock, most_held=MIB) as stage:
        await stage.client.send_all((MIB + 1).to_bytes(4, "big") + b"\0\0\0\x09")
        assert await heard(stage.client) == b""
        assert "8 to 1048576 are expected" in str(stage.faults[0])


async def test_an_answer_that_nobody_asked_and_one_that_is_too_large_end_it(
    autojump_clock: MockClock,
) -> None:
    size = (MOST_ANSWER_BYTES + 1).to_bytes(4, "big")
    for said in (answer(EMPTY, 12, 5), size + (1).to_bytes(4, "big")):
        async with staged(autojump_clock) as stage:
            await stage.client.send_all(request(MetadataRequest(), 8, 1))
            await stage.broker.send_all(said)
            assert await heard(stage.client) == b""
            assert len(stage.faults) == 1


async def test_a_client_that_asks_on_without_end_is_not_remembered_without_end(
    autojump_clock: MockClock,
) -> None:
    async with staged(autojump_clock) as stage:
        await stage.client.send_all(fetch() * (MOST_UNDER_WAY + 5))
        assert await heard(stage.broker) == fetch() * MOST_UNDER_WAY
        await stage.broker.send_all(answer(EMPTY, 12))
        assert await heard(stage.broker) == fetch()


async def test_behind_a_switch_a_member_asks_where_it_stands_before_it_reads(
    autojump_clock: MockClock,
) -> None:
    asks = request(OffsetFetchRequest(group_id="g", topics=()), 7, 2)
    async with staged(autojump_clock) as stage:
        stage.followed.arrivals.begin(trio.current_time())
        await stage.client.send_all(fetch(1))
        assert await heard(stage.broker) == b""
        assert await heard(stage.client) == answer(EMPTY, 12)
        await stage.client.send_all(asks + fetch(3))
        assert await heard(stage.broker) == asks + fetch(3)


async def test_answers_of_ours_that_wait_for_the_brokers_are_bounded_and_all_are_given(
    autojump_clock: MockClock,
) -> None:
    """A request makes an answer of the same size, and the broker may take minutes for the first."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topic = FetchTopic(topic="t" * 249, partitions=(partition,))
    many = FetchRequest(max_wait_ms=1, min_bytes=1, topics=(topic,) * 200)
    async with staged(autojump_clock) as stage:
        stage.followed.arrivals.begin(trio.current_time())
        await stage.client.send_all(JOIN + b"".join(request(many, 12, n) for n in range(2, 9)))
        assert await heard(stage.broker) == JOIN
        assert stage.connection.waiting_bytes < 2 * FREE_BYTES
        await stage.broker.send_all(answer(EMPTY, 12))
        told = await heard(stage.client)
        for number in range(1, 9):
            size = int.from_bytes(told[:4], "big")
            assert int.from_bytes(told[4:8], "big") == number
            told = told[4 + size :]
        assert told == b""
        assert stage.connection.waiting_bytes == 0


async def test_large_requests_wait_for_their_turn(autojump_clock: MockClock) -> None:
    async with staged(autojump_clock, most_held=MIB) as stage:
        async with stage.shared.budget.hold(MIB):
            await stage.client.send_all((MIB).to_bytes(4, "big") + produce()[4:])
            await heard(stage.broker)
            assert stage.shared.budget.held == MIB
        assert not stage.faults


async def test_a_frame_that_does_not_come_is_not_held_for_ever(autojump_clock: MockClock) -> None:
    async with staged(autojump_clock) as stage:
        await stage.client.send_all(produce()[:-1])
        await trio.sleep(STALLED_S + 1)
        assert "stood still" in str(stage.faults[0])


async def test_a_client_that_reads_nothing_is_let_go(autojump_clock: MockClock) -> None:
    async with staged(autojump_clock) as stage:
        stage.ours.send_stream.send_all_hook = trio.sleep_forever
        await stage.client.send_all(fetch())
        assert await heard(stage.broker) == fetch()
        await stage.broker.send_all(answer(EMPTY, 12))
        await trio.sleep(IDLE_S + 1)
        assert await stage.broker.receive_some() == b""


async def test_while_a_promotion_leads_away_writes_wait_and_reads_pass(
    autojump_clock: MockClock,
) -> None:
    async with staged(autojump_clock) as stage:
        stage.followed.take(MOVING)
        await stage.client.send_all(fetch(1) + produce(2))
        assert await heard(stage.broker) == fetch(1)
        assert stage.shared.counts.held == 1
        stage.followed.take(HERE)
        assert await heard(stage.broker) == produce(2)
        assert stage.shared.counts.held == 0


async def test_writes_are_not_held_for_ever(autojump_clock: MockClock) -> None:
    async with staged(autojump_clock) as stage:
        stage.followed.take(MOVING)
        await stage.client.send_all(produce())
        await trio.sleep(STALLED_S + 1)
        assert "held for it" in str(stage.faults[0])


async def test_while_a_promotion_leads_away_no_topic_is_made(autojump_clock: MockClock) -> None:
    makes = request(CreateTopicsRequest(topics=(), timeout_ms=1), 5)
    async with staged(autojump_clock) as stage:
        stage.followed.take(MOVING)
        await stage.client.send_all(makes)
        assert await heard(stage.broker) == b""
        stage.followed.take(HERE)
        assert await heard(stage.broker) == makes
        made = answer(CreateTopicsResponse(topics=()), 5)
        await stage.broker.send_all(made)
        assert await heard(stage.client) == made


async def test_a_member_is_known_while_its_connection_lasts(autojump_clock: MockClock) -> None:
    async with staged(autojump_clock) as stage:
        await stage.client.send_all(HEARTBEAT + HEARTBEAT)
        await heard(stage.broker)
        assert stage.shared.members.known == {Member("g", "m")}
        await stage.client.aclose()
        await wait_all_tasks_blocked()
        assert not stage.shared.members.known


async def test_a_member_is_told_to_join_anew_and_leaves_instead(autojump_clock: MockClock) -> None:
    async with staged(autojump_clock) as stage:
        stage.followed.take(MOVING)
        await stage.client.send_all(HEARTBEAT)
        assert await heard(stage.broker) == HEARTBEAT
        await stage.broker.send_all(answer(HeartbeatResponse(error_code=0), 4))
        told = decode_response(HeartbeatResponse, (await heard(stage.client))[4:], 4)
        assert told.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        await stage.client.send_all(JOIN)
        left = (await heard(stage.broker))[4:]
        header, _ = decode_request_header(left)
        assert (header.api_key, header.correlation_id) == (LeaveGroupRequest.API_KEY, 1)
        assert b"g" in left
        assert b"m" in left
        await stage.broker.send_all(answer(LeaveGroupResponse(error_code=0), 3))
        assert await heard(stage.client) == b""
        stage.followed.take(HERE)
        await wait_all_tasks_blocked()
        assert await stage.client.receive_some() == b"", "it joins by a new connection"
        assert not stage.faults


async def test_at_a_switch_what_was_written_is_answered_first(autojump_clock: MockClock) -> None:
    async with staged(autojump_clock) as stage, trio.open_nursery() as nursery:
        await stage.client.send_all(produce())
        await heard(stage.broker)
        stage.followed.take(THERE)
        nursery.start_soon(stage.connection.finish)
        await stage.broker.send_all(produced(ErrorCode.NONE))
        assert await heard(stage.client) == produced(ErrorCode.NONE)
        assert await stage.client.receive_some() == b""
        assert stage.shared.counts.unanswered == 0


async def test_a_lost_site_is_not_waited_for_and_what_it_leaves_open_is_counted(
    autojump_clock: MockClock,
) -> None:
    async with staged(autojump_clock) as stage:
        await stage.client.send_all(produce(1) + produce(2))
        await heard(stage.broker)
        begun = trio.current_time()
        await stage.connection.finish()
        assert trio.current_time() - begun == pytest.approx(LAST_ANSWERS_S, abs=0.01)
        assert stage.shared.counts.unanswered == 2
        with suppress(trio.BrokenResourceError):
            assert await stage.client.receive_some() == b""


LOGIN = request(SaslAuthenticateRequest(auth_bytes=b"shown"), 2)


def logged_in(said: bytes = b"", code: ErrorCode = ErrorCode.NONE) -> bytes:
    return answer(SaslAuthenticateResponse(error_code=code, auth_bytes=said), 2)


@pytest.mark.parametrize(
    "before",
    [
        None,
        logged_in(code=ErrorCode.SASL_AUTHENTICATION_FAILED),
        logged_in(b"r=nonce,s=c2FsdA==,i=4096"),
        logged_in(b'{"status":"invalid_token"}'),
    ],
)
async def test_without_a_login_nothing_is_asked_of_brokers_that_want_one(
    before: bytes | None, autojump_clock: MockClock
) -> None:
    async with staged(autojump_clock, wants_login=True) as stage:
        if before is not None:
            await stage.client.send_all(LOGIN)
            assert await heard(stage.broker) == LOGIN
            await stage.broker.send_all(before)
            assert await heard(stage.client) == before
        await stage.client.send_all(JOIN)
        assert await heard(stage.broker) == b""
        assert "a request of API 11 without a login" in str(stage.faults[0])
        assert not stage.shared.members.known


async def test_with_a_login_everything_is_carried(autojump_clock: MockClock) -> None:
    async with staged(autojump_clock, wants_login=True) as stage:
        await stage.client.send_all(LOGIN)
        assert await heard(stage.broker) == LOGIN
        await stage.broker.send_all(logged_in(b"v=proof"))
        assert await heard(stage.client) == logged_in(b"v=proof")
        for said in (fetch(), LOGIN):
            await stage.client.send_all(said)
            assert await heard(stage.broker) == said


async def test_without_a_login_no_memory_is_held_that_others_need(
    autojump_clock: MockClock,
) -> None:
    async with staged(autojump_clock, wants_login=True) as stage:
        await stage.client.send_all(HEAD.pack(MOST_LOGIN_BYTES + 1, 36, 2))
        await wait_all_tasks_blocked()
        assert f"8 to {MOST_LOGIN_BYTES} are expected" in str(stage.faults[0])
        assert stage.shared.budget.held == 0


async def test_a_connection_speaks_for_few_members_and_carries_what_others_say(
    autojump_clock: MockClock,
) -> None:
    """Each is a node in the witness, and whoever reaches the endpoint may name as many."""
    async with staged(autojump_clock) as stage:
        for number in range(MOST_MEMBERS + 3):
            member = HeartbeatRequest(group_id="g", generation_id=1, member_id=f"m{number}")
            await stage.client.send_all(request(member, 4))
            assert await heard(stage.broker) == request(member, 4)
        assert len(stage.shared.members.known) == MOST_MEMBERS


def test_an_endpoint_speaks_for_so_many_members_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failover.bootstrap.group_members.MOST", 2)
    members = GroupMembers()
    first, second, third = (Member("g", name) for name in "abc")
    assert [members.add(each) for each in (first, second, third, first)] == [True] * 2 + [
        False,
        True,
    ]
    for each in (first, second):
        members.remove(each)
    assert members.add(third)
    assert not members.add(Member("g" * 1_001, "a"))
    assert members.known == {first, third}
