"""Topics created, grown and deleted by clients that have a quota of changes (KIP-599)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import trio

from broker.controller.cluster import ApiError
from broker.controller.topics import TopicSpec
from broker.metadata_cache import PartitionView
from broker.quotas.entity import MUTATION_RATE, QuotaEntity
from broker.zookeeper.tree import TopicAssignment
from tests.broker.rig import Client, LoneNode, Rig, serving, view
from wire.errors import ErrorCode
from wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.delete_topics import DeleteTopicsRequest

NONE, EXCEEDED = ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED


class InMemory:
    """A controller whose topics are in the metadata at once."""

    is_active = True

    def __init__(self, node: LoneNode) -> None:
        self.node = node

    async def create_topic(
        self, spec: TopicSpec, *, validate_only: bool = False
    ) -> TopicAssignment | ApiError:
        if self.node.metadata.topic(spec.name) is not None:
            return ApiError(error=ErrorCode.TOPIC_ALREADY_EXISTS, message="there")
        return self._put(spec.name, spec.partitions, validate_only=validate_only)

    async def grow_topic(
        self,
        name: str,
        total: int,
        _: Sequence[Sequence[int]] | None,
        *,
        validate_only: bool = False,
    ) -> TopicAssignment | ApiError:
        return self._put(name, total, validate_only=validate_only)

    def _put(self, name: str, count: int, *, validate_only: bool) -> TopicAssignment:
        topic_id = uuid4()
        if not validate_only:
            views: list[PartitionView] = [view(index) for index in range(count)]
            self.node.metadata.put_partitions(name, topic_id, views)
        return TopicAssignment(topic_id=topic_id, replicas=dict.fromkeys(range(count), (0,)))

    async def delete_topic(self, name: str) -> ErrorCode:
        self.node.metadata.remove_topic(name)
        return NONE

    async def wait_deleted(self, _: str) -> None:
        """They are gone at once."""


def limit(rig: Rig) -> None:
    """Allow one partition a second, and eleven at once."""
    rig.node.controller = InMemory(rig.node)  # type: ignore[assignment]
    rig.node.quotas.table.put(QuotaEntity(client="c"), {MUTATION_RATE: "1"})


async def create(client: Client, version: int, *names: str, **fields: Any) -> Any:
    topics = tuple(
        CreatableTopic(
            name=name, num_partitions=8, replication_factor=1, assignments=(), configs=()
        )
        for name in names
    )
    request = CreateTopicsRequest(topics=topics, timeout_ms=1_000, **fields)
    return await client.ask(request, version, client_id="c")


async def test_newer_clients_are_refused_what_is_too_much_and_told_when_to_come_again(
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        limit(rig)
        answer = await create(client, 6, "a", "b", "x", validate_only=True)
        assert [one.error_code for one in answer.topics] == [NONE] * 3, "looking costs nothing"
        answer = await create(client, 6, "a", "b", "x")
        assert [one.error_code for one in answer.topics] == [NONE, NONE, EXCEEDED]
        assert answer.throttle_time_ms == 5_000
        assert rig.node.metadata.topic("x") is None
        began = trio.current_time()
        answer = await create(client, 6, "a", "x")
        assert trio.current_time() - began == pytest.approx(5), "it was left alone for so long"
        assert [one.error_code for one in answer.topics] == [ErrorCode.TOPIC_ALREADY_EXISTS, NONE]


async def test_older_clients_get_what_they_ask_for_and_rest(
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        limit(rig)
        answer = await create(client, 5, "a", "b", "x")
        assert [one.error_code for one in answer.topics] == [NONE] * 3
        assert answer.throttle_time_ms == 13_000


async def test_growing_costs_what_is_added_and_deleting_what_goes(
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        limit(rig)
        await create(client, 6, "a")
        grown = CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name="a", count=15, assignments=None),),
            timeout_ms=1_000,
            validate_only=False,
        )
        answer = await client.ask(grown, 3, client_id="c")
        assert answer.results[0].error_code == NONE
        deleted = DeleteTopicsRequest(topic_names=("a", "unknown"), timeout_ms=1_000)
        refused = await client.ask(deleted, 5, client_id="c")
        assert [one.error_code for one in refused.responses] == [EXCEEDED, NONE]
        assert refused.throttle_time_ms == 4_000
        answer = await client.ask(deleted, 5, client_id="c")
        assert answer.responses[0].error_code == NONE
        answer = await client.ask(grown, 3, client_id="c")
        assert answer.results[0].error_code == EXCEEDED
