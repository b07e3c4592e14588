"""What a Fetch that waits leaves behind, and what it leaves to the others meanwhile."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from broker.apis import fetch as fetching
from broker.apis.answers import FileAnswer
from broker.context import Call, Node
from broker.fairness import AT_ONCE
from broker.replication.fetch_sessions import FetchSessions
from broker.replication.replica import Replica
from broker.replication.watching import Watcher
from tests.broker.rig import (
    TOPIC_ID,
    LoneNode,
    batch,
    config,
    fetch,
    leadership,
    produce,
    serving,
)
from wire.errors import ErrorCode
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic


async def test_a_session_that_ends_while_its_request_waits_watches_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that reconnects closes its session, and the request of before is still here."""
    watching: set[Watcher] = set()
    watch, unwatch = Replica.watch, Replica.unwatch

    def noted_watch(replica: Replica, watcher: Watcher) -> None:
        watching.add(watcher)
        watch(replica, watcher)

    def noted_unwatch(replica: Replica, watcher: Watcher) -> None:
        watching.discard(watcher)
        unwatch(replica, watcher)

    monkeypatch.setattr(Replica, "watch", noted_watch)
    monkeypatch.setattr(Replica, "unwatch", noted_unwatch)
    async with serving(tmp_path) as rig, rig.connect() as former, rig.connect() as client:
        first = await former.ask(fetch(0, session_epoch=0))
        assert len(watching) == 1
        session = {"session_id": first.session_id, "session_epoch": 1}
        waiting = fetch(0, max_wait_ms=200, min_bytes=1_000, **session)
        await former.send(replace(waiting, topics=()))
        await trio.testing.wait_all_tasks_blocked(0.01)
        await client.ask(produce(batch(b"news")))
        await client.ask(fetch(0, session_id=first.session_id, session_epoch=-1))
        await former.receive()
        assert not watching


async def test_a_record_that_comes_while_many_partitions_are_looked_at_is_not_slept_through(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    node = LoneNode(tmp_path, config())
    count = 2 * AT_ONCE + 1
    for index in range(count):
        node.partitions.take(replace(leadership(index), replicas=(0,)))
    asked = tuple(
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1_000)
        for index in range(count)
    )
    topic = FetchTopic(topic="t", topic_id=TOPIC_ID, partitions=asked)
    request = FetchRequest(max_wait_ms=2_000, min_bytes=1, max_bytes=100_000, topics=(topic,))
    call = Call(node=cast("Node", node), api_version=12, client_id="c", client_host="127.0.0.1")
    looked_at = node.partitions.led("t", 0)
    assert looked_at is not None

    async def append() -> None:
        """Comes when the request first leaves the others their turn."""
        looked_at.append_from_client(memoryview(batch(b"news")), acks=1, is_fenced=False)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(append)
        answer = await fetching.handle(request, call)
    assert isinstance(answer, FileAnswer)
    assert sum(piece.length for piece in answer.slices) == len(batch(b"news"))
    assert autojump_clock.current_time() < 2
    node.logs.close()


async def test_a_session_that_grows_beyond_what_all_may_want_is_ended(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client, rig.connect() as other:
        sessions = rig.node.partitions.fetch_sessions = FetchSessions(most_partitions=2)
        first = await client.ask(fetch(0, session_epoch=0))
        second = await other.ask(fetch(0, session_epoch=0))
        assert 0 not in {first.session_id, second.session_id}
        assert not (await client.ask(fetch(0, session_epoch=0))).session_id
        more = fetch(0, partition=1, session_id=first.session_id, session_epoch=1)
        answer = await client.ask(more)
        assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        same = fetch(0, session_id=second.session_id, session_epoch=1)
        assert (await other.ask(same)).error_code == ErrorCode.NONE
        assert len(sessions) == 1


async def test_a_session_that_grows_beyond_what_a_request_may_name_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MOST_WANTED", 3)
    async with serving(tmp_path) as rig, rig.connect() as client:
        first = await client.ask(fetch(0, session_epoch=0))
        (topic,) = fetch(0).topics
        errors = []
        for index in range(1, 5):
            more = replace(topic, partitions=(replace(topic.partitions[0], partition=index),))
            grown = fetch(0, session_id=first.session_id, session_epoch=index)
            answer = await client.ask(replace(grown, topics=(more,)))
            errors.append(answer.error_code)
        ended = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert errors == [ErrorCode.NONE, ErrorCode.NONE, ended, ended]
        assert not len(rig.node.partitions.fetch_sessions)


@pytest.mark.parametrize("segment_bytes", [200, 1_000_000])
async def test_a_reader_that_is_behind_does_not_wait_for_more_than_may_be_given(
    tmp_path: Path, segment_bytes: int
) -> None:
    """One batch fits, or one is in the segment, and `min_bytes` never come: Kafka answers, too."""
    async with serving(tmp_path, log_segment_bytes=segment_bytes) as rig, rig.connect() as client:
        for _ in range(3):
            await client.ask(produce(batch(b"v" * 50)))
        size = len(batch(b"v" * 50))
        at_a_time = {"min_bytes": 2 * size - 1, "partition_max_bytes": size + 1}
        began = trio.current_time()
        for offset in (0, 1):
            answer = await client.ask(fetch(offset, max_wait_ms=20_000, **at_a_time))
            assert len(answer.responses[0].partitions[0].records) == size
        assert trio.current_time() - began < 10
        answer = await client.ask(fetch(2, max_wait_ms=50, **at_a_time))
        assert len(answer.responses[0].partitions[0].records) == size
