"""What a canary makes of the other site's answers about its copy."""

import pytest
import trio

from failover.canary.flow_canary import FlowCanary
from runtime.configuration.canary_section import CanaryConfig
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from tests.failover.plans import FLOW
from wire.errors import ErrorCode
from wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from wire.net import RequestRefused, open_cluster


def canary() -> FlowCanary:
    """One that sends nothing."""
    return FlowCanary(
        FLOW, CanaryConfig(topic="canary"), may_send=lambda: False, told=lambda _: None
    )


def refuse_ends(fake: FakeCluster, code: ErrorCode) -> None:
    """Have every partition's end be refused."""

    async def refuse(_: object, request: ListOffsetsRequest) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=tuple(
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        ListOffsetsPartitionResponse(
                            partition_index=asked.partition_index, error_code=code
                        )
                        for asked in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    for broker in fake.brokers.values():
        broker.scripts[ListOffsetsRequest.API_KEY] = refuse


async def test_a_copy_that_is_not_there_yet_is_waited_for() -> None:
    with trio.fail_after(60):
        async with (
            run_fake_cluster() as fake,
            open_cluster(fake.bootstrap, client_id="t") as target,
            trio.open_nursery() as nursery,
        ):
            looked = trio.Event()
            nursery.start_soon(canary().read, target, looked.set)
            await looked.wait()
            nursery.cancel_scope.cancel()


async def test_a_copy_that_may_not_be_read_is_told_of() -> None:
    """It was waited for as if it were not there: records counted as late, and nobody said why."""
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as target:
        fake.create_topic("canary", 0)
        refuse_ends(fake, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        with trio.fail_after(60), pytest.raises(RequestRefused) as refused:
            await canary().read(target, lambda: None)
    assert str(refused.value) == "the end of canary-0: TOPIC_AUTHORIZATION_FAILED"
