"""An error that nobody has foreseen stops one part of `failover serve`, for a moment."""

from functools import partial
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry
from trio.testing import MockClock

from failover.canary.flow_canary import FlowCanary, Works
from failover.canary.watch import watch_canaries
from failover.serve.readiness import ReadinessCollector, follow_readiness
from failover.serve.site_keeper import SiteKeeper
from failover.serve.status_collector import StatusCollector
from runtime.configuration.config import Configuration, load
from runtime.process.unforeseen import keep_at_work
from tests.dc_yaml import dc_yaml
from wire.net import Cluster


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml())
    return load(file)


class Failing:
    """Fails each time it is called, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, *_: object) -> None:
        await trio.lowlevel.checkpoint()
        self.calls += 1
        raise ZeroDivisionError("planted")


async def test_a_look_that_fails_shows_no_old_status_and_is_taken_again(
    configuration: Configuration,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    collector, failing = StatusCollector(), Failing()
    collector.status = "what was seen last"  # type: ignore[assignment]
    follower = SiteKeeper(configuration, collector)
    monkeypatch.setattr(follower, "_look_until_fault", failing)
    with trio.move_on_after(30):
        await keep_at_work(follower.run, follower.trouble)
    assert failing.calls > 5
    assert collector.status is None
    assert "ZeroDivisionError: planted" in str(follower.trouble.text)


async def test_readiness_that_cannot_be_judged_is_not_known_and_asked_for_again(
    configuration: Configuration,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    collector, calls = ReadinessCollector(), []

    def failing(_: object) -> None:
        calls.append(trio.current_time())
        raise ZeroDivisionError("planted")

    collector.know(["what was found last"], 0)  # type: ignore[list-item]
    monkeypatch.setattr("failover.serve.readiness.open_witness", failing)
    with trio.move_on_after(30):
        await follow_readiness(configuration, collector)
    assert len(calls) > 5
    assert not any(
        metric.samples for metric in collector.collect() if metric.name == "failover_ready"
    )


async def test_half_a_canary_that_fails_leaves_the_other_at_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(failover={"canary": {"topic": "orders"}}))
    failing, reads = Failing(), []

    async def send(_: FlowCanary, __: Cluster, ___: Works) -> None:
        await failing()

    async def read(canary: FlowCanary, __: Cluster, ___: Works) -> None:
        reads.append(canary.flow.name)
        await trio.sleep_forever()

    monkeypatch.setattr(FlowCanary, "send", send)
    monkeypatch.setattr(FlowCanary, "read", read)
    watch = partial(watch_canaries, load(file), CollectorRegistry(), lambda: None)
    with trio.move_on_after(30):
        await watch()
    assert failing.calls > 5
    assert len(reads) == 1
