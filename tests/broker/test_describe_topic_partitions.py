"""Topics are told page by page, in the order of their names (KIP-966)."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from broker.apis import describe_topic_partitions
from broker.authorizer.authorizer import EVERY_RIGHT, Rights
from broker.authorizer.verdict import Asker
from broker.context import Call, Node
from broker.guards import topics as guards
from broker.metadata_cache import BrokerEndpoint, MetadataCache
from tests.broker.rig import view
from wire.acls import Operation, ResourceType
from wire.errors import ErrorCode
from wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)


class RightsTo(Rights):
    """Everything may be done with one topic, and nothing else."""

    __slots__ = ("topic",)

    def __init__(self, topic: str) -> None:
        super().__init__(None, Asker("User:alice", "h"))
        self.topic = topic

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        return kind is ResourceType.TOPIC and name == self.topic and operation is not None


def call(counts: dict[str, int], **fields: Any) -> Call:
    """Return a call to a broker that knows topics with so many partitions."""
    metadata = MetadataCache("cluster")
    for number, (name, count) in enumerate(counts.items(), start=1):
        metadata.put_partitions(name, UUID(int=number), [view(index) for index in range(count)])
    metadata.set_brokers(0, [BrokerEndpoint(broker_id=0, host="h", port=1)])

    async def wait_metadata() -> None:
        """It is there from the start."""

    node: Any = SimpleNamespace(metadata=metadata, wait_metadata=wait_metadata)
    return Call(node=cast("Node", node), api_version=0, client_id=None, client_host="h", **fields)


def asked(
    *names: str, limit: int = 2_000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=cursor,
    )


def told(answer: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [(t.name, [p.partition_index for p in t.partitions]) for t in answer.topics]


async def pages(
    counts: dict[str, int], names: Sequence[str], limit: int
) -> list[DescribeTopicPartitionsResponse]:
    """Return all pages as a client turns them over."""
    found: list[DescribeTopicPartitionsResponse] = []
    cursor: Cursor | None = None
    while not found or cursor is not None:
        request = asked(*names, limit=limit, cursor=cursor)
        found.append(await describe_topic_partitions.handle(request, call(counts)))
        cursor = found[-1].next_cursor
    return found


async def test_a_page_ends_within_a_topic_and_the_next_goes_on_there() -> None:
    first, second = await pages({"b": 3, "a": 2}, (), 4)
    assert told(first) == [("a", [0, 1]), ("b", [0, 1])]
    assert first.next_cursor == Cursor(topic_name="b", partition_index=2)
    assert told(second) == [("b", [2])]
    assert second.topics[0].partitions[0].eligible_leader_replicas == ()


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 5)),
    st.lists(st.sampled_from("abcdefgh"), unique=True),
    st.integers(-1, 7),
)
def test_the_pages_together_have_everything_once(
    counts: dict[str, int], names: list[str], limit: int
) -> None:
    found = trio.run(pages, counts, names, limit)
    partitions = [(name, i) for page in found for name, held in told(page) for i in held]
    wanted = sorted(names or counts)
    assert partitions == [(name, i) for name in wanted for i in range(counts.get(name, 0))]
    assert all(
        sum(len(topic.partitions) for topic in page.topics) <= max(1, limit) for page in found
    )
    unknown = {t.name for page in found for t in page.topics if t.error_code}
    assert unknown == set(wanted) - set(counts)


async def test_a_cursor_of_a_topic_that_is_gone_begins_with_the_next_one() -> None:
    request = asked(cursor=Cursor(topic_name="b", partition_index=7))
    answer = await describe_topic_partitions.handle(request, call({"a": 1, "c": 2}))
    assert told(answer) == [("c", [0, 1])]


async def test_a_cursor_below_zero_is_refused() -> None:
    request = asked(cursor=Cursor(topic_name="a", partition_index=-1))
    answer = await describe_topic_partitions.handle(request, call({"a": 1}))
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), [("mine", 0)]),
        (("mine", "theirs"), [("mine", 0), ("theirs", ErrorCode.TOPIC_AUTHORIZATION_FAILED)]),
        (("theirs",), [("theirs", ErrorCode.TOPIC_AUTHORIZATION_FAILED)]),
    ],
)
async def test_topics_that_may_not_be_described_are_hidden(
    names: tuple[str, ...], expected: list[tuple[str, int]]
) -> None:
    limited = call({"mine": 1, "theirs": 1}, rights=RightsTo("mine"))
    handle = describe_topic_partitions.handle
    answer = await guards.describe_topic_partitions(asked(*names), limited, handle)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == expected


async def test_a_topic_that_may_not_be_described_is_on_no_page_behind_its_name() -> None:
    limited = call({"mine": 3, "theirs": 1, "a": 1}, rights=RightsTo("mine"))
    handle = describe_topic_partitions.handle
    request = asked("a", "mine", "theirs", limit=2)
    first = await guards.describe_topic_partitions(request, limited, handle)
    assert [topic.name for topic in first.topics] == ["mine", "a", "theirs"]
    request = replace(request, cursor=first.next_cursor)
    second = await guards.describe_topic_partitions(request, limited, handle)
    assert [topic.name for topic in second.topics] == ["mine", "theirs"]


async def test_a_topic_that_goes_while_all_are_told_is_left_out() -> None:
    everyone = call({"going": 1, "staying": 1}, rights=EVERY_RIGHT)

    async def handle(
        request: DescribeTopicPartitionsRequest, call: Call
    ) -> DescribeTopicPartitionsResponse:
        call.node.metadata.remove_topic("going")
        return await describe_topic_partitions.handle(request, call)

    answer = await guards.describe_topic_partitions(asked(), everyone, handle)
    assert told(answer) == [("staying", [0])]
