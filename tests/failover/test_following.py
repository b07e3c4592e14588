"""What `failover serve` makes of a witness that cannot be read."""

# ruff: noqa: ARG001 - asking for the clock is what makes it jump

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from failover.journal.journal import JournalUnreadable
from failover.serve import site_keeper
from failover.serve.status_collector import StatusCollector
from failover.view.status import Status
from runtime.configuration.config import load
from runtime.coordination.witness import WitnessGarbled
from runtime.coordination.zookeeper import NoNode, ZooKeeperUnreachable
from runtime.pair.evidence import PairSeen
from runtime.pair.opening import PairContradicted, PairUnknown
from tests.failover.plans import BACK
from tests.failover.two_sites import promotable


@pytest.mark.parametrize(
    "fault",
    [
        WitnessGarbled("/r/active: no active site"),
        JournalUnreadable("/r/failover/journal/1: no journal"),
        NoNode("/r/active"),
        ZooKeeperUnreachable("w:1"),
        PairUnknown("nobody has started the pair"),
        PairContradicted("dc1 and dc2 are one cluster"),
    ],
    ids=lambda fault: type(fault).__name__,
)
async def test_a_witness_that_cannot_be_read_is_told_and_read_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
    fault: Exception,
) -> None:
    """Who ended with it would leave nobody to close a lost site that comes back."""
    collector = StatusCollector()
    collector.know(BACK)
    seen: list[Status | None] = []

    @asynccontextmanager
    async def open_witness(*_: object, **__: object) -> AsyncIterator[None]:
        yield

    async def pair(*_: object) -> PairSeen:
        return PairSeen(
            path="/r", initial_active="dc1", active=BACK.active, pair=None, journals=(), sites={}
        )

    async def same_file(*_: object) -> None:
        await trio.lowlevel.checkpoint()

    async def read_status(*_: object) -> Status:
        seen.append(collector.status)
        if len(seen) == 1:
            raise fault
        return BACK

    monkeypatch.setattr(site_keeper, "open_witness", open_witness)
    monkeypatch.setattr(site_keeper, "begin_pair", pair)
    monkeypatch.setattr(site_keeper, "require_pair", pair)
    monkeypatch.setattr(site_keeper, "read_status", read_status)
    monkeypatch.setattr(site_keeper, "find_wrong", lambda *_, **__: None)
    monkeypatch.setattr(site_keeper, "look_for_another_file", same_file)
    file = tmp_path / "dc.yaml"
    file.write_text(promotable(dc1="a:1", dc2="b:1", witness="w:1", path="/r", topics=".*"))
    with trio.move_on_after(5):
        await site_keeper.SiteKeeper(load(file), collector).run()
    assert seen[:3] == [BACK, None, BACK]
    assert str(fault) in caplog.text
