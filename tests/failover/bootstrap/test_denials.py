"""What a forwarded client hears that is denied a right: by a fence, or because it lacks it."""

import pytest
import trio
from trio.testing import (
    MockClock,
)

from runtime.coordination.witness import ActiveSite
from runtime.rights.closing import barring, closing
from tests.failover.bootstrap.staged import (
    Stage,
    answer,
    heard,
    produce,
    produced,
    request,
    staged,
)
from wire.errors import ErrorCode
from wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
)
from wire.net.rights import PREFIXED, Right


@pytest.mark.parametrize(
    "said",
    [ActiveSite(site="dc1", epoch=1, moving_to="dc2"), ActiveSite(site="dc2", epoch=2), None],
    ids=["moving", "moved", "unknown"],
)
async def test_a_right_denied_for_a_promotion_is_refused_for_the_moment_only(
    said: ActiveSite | None,
    autojump_clock: MockClock,
) -> None:
    async with staged(autojump_clock) as stage:
        stage.said = said
        await stage.client.send_all(produce())
        await heard(stage.broker)
        await stage.broker.send_all(produced(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        assert await heard(stage.client) == produced(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert stage.shared.counts.softened == 1


INIT_PRODUCER = request(InitProducerIdRequest(transaction_timeout_ms=1), 4)
MAKES_TOPICS = request(MetadataRequest(), 8)


def no_id(code: ErrorCode) -> bytes:
    return answer(InitProducerIdResponse(error_code=code, producer_epoch=-1), 4)


def no_topic(code: ErrorCode, name: str = "t") -> bytes:
    topic = MetadataResponseTopic(error_code=code, name=name, partitions=())
    return answer(MetadataResponse(brokers=(), topics=(topic,)), 8)


DENIALS = pytest.mark.parametrize(
    ("asked", "denied", "later", "closed"),
    [
        (
            produce(),
            produced(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            produced(ErrorCode.NOT_ENOUGH_REPLICAS),
            closing("t"),
        ),
        (
            INIT_PRODUCER,
            no_id(ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            no_id(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
            closing("t"),
        ),
        (
            MAKES_TOPICS,
            no_topic(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            no_topic(ErrorCode.LEADER_NOT_AVAILABLE),
            barring("t", pattern=PREFIXED),
        ),
    ],
    ids=["Produce", "InitProducerId", "Metadata"],
)


async def told(stage: Stage, asked: bytes, answered: bytes) -> bytes:
    """Return what a client hears that asks this, a moment behind whatever was before."""
    await trio.sleep(0.01)
    await stage.client.send_all(asked)
    assert await heard(stage.broker) == asked
    await stage.broker.send_all(answered)
    return await heard(stage.client)


@DENIALS
async def test_what_a_fence_denies_is_denied_for_the_moment_whatever_the_witness_says(
    asked: bytes, denied: bytes, later: bytes, closed: Right, autojump_clock: MockClock
) -> None:
    """An old copy of the witness knows of no promotion, whose fence stands."""
    async with staged(autojump_clock) as stage:
        for fence in (frozenset({closed}), None):
            stage.closed = fence
            assert [await told(stage, asked, denied) for _ in range(3)] == [later] * 3
        assert stage.shared.counts.softened == 6


@DENIALS
async def test_a_right_that_somebody_lacks_is_denied_once_no_fence_can_be_the_reason(
    asked: bytes, denied: bytes, later: bytes, closed: Right, autojump_clock: MockClock
) -> None:
    """A fence may be lifted between the denial and the look."""
    async with staged(autojump_clock) as stage:
        assert await told(stage, asked, denied) == later
        assert [await told(stage, asked, denied) for _ in range(2)] == [denied] * 2
        stage.closed = frozenset({closed})
        assert await told(stage, asked, denied) == later
        stage.closed = frozenset()
        assert [await told(stage, asked, denied) for _ in range(2)] == [later, denied]


async def test_requests_on_their_way_while_a_fence_was_lifted_are_not_denied(
    autojump_clock: MockClock,
) -> None:
    denied, later = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.NOT_ENOUGH_REPLICAS)
    async with staged(autojump_clock) as stage:
        await stage.client.send_all(produce(1) + produce(2))
        assert await heard(stage.broker) == produce(1) + produce(2)
        for number in (1, 2):
            await trio.sleep(0.01)
            await stage.broker.send_all(produced(denied, number))
            assert await heard(stage.client) == produced(later, number)


async def test_a_fence_about_other_topics_excuses_no_denial(autojump_clock: MockClock) -> None:
    others = {closing("u"), barring("u"), barring("tt", pattern=PREFIXED)}
    denied = produced(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with staged(autojump_clock) as stage:
        stage.closed = frozenset(others)
        await told(stage, produce(), denied)
        assert await told(stage, produce(), denied) == denied
