"""What a Fetch that waits leaves behind, and what it leaves to the others meanwhile."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio.testing

from broker.replication.replica import Replica
from broker.replication.watching import Watcher
from tests.broker.rig import batch, fetch, produce, serving


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
