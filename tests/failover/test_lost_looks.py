"""When a site is taken for lost: not because it was slow once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from failover.sites.site import Site
from failover.view import snapshot
from failover.view.snapshot import look_at_site, look_whether_lost
from runtime.configuration.config import load
from runtime.process.ports import free_port
from tests.dc_yaml import dc_yaml, flow
from tests.doubles.fake_answers import ANSWERS
from tests.doubles.fake_cluster import FakeBroker, run_fake_cluster
from wire.headers import RequestHeader
from wire.messages.list_groups import ListGroupsRequest
from wire.messages.list_offsets import ListOffsetsRequest
from wire.messages.metadata import MetadataRequest
from wire.net import AuthenticationFailed, open_cluster


@asynccontextmanager
async def answering_after(delay_s: float) -> AsyncIterator[Site]:
    """A site whose one broker takes its time for each look."""
    async with run_fake_cluster() as cluster:
        [broker] = cluster.brokers.values()

        async def answer(header: RequestHeader, request: Any) -> Any:
            await trio.sleep(delay_s)
            del broker.scripts[MetadataRequest.API_KEY]
            return ANSWERS[MetadataRequest.API_KEY](broker, header.api_version, request)

        broker.scripts[MetadataRequest.API_KEY] = answer
        async with open_cluster(cluster.bootstrap, client_id="t") as opened:
            yield Site(name="dc1", cluster=opened)


async def test_a_slow_site_is_not_lost() -> None:
    async with answering_after(0.5) as site:
        assert (await look_whether_lost(site, 5)).fault is None


@pytest.mark.parametrize(
    ("latest_s", "fault"), [(0.3, None), (60, "who is in its groups: no answer within 1 s")]
)
async def test_a_site_is_silent_that_leaves_a_question_unanswered_and_not_for_all_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, latest_s: float, fault: str | None
) -> None:
    monkeypatch.setattr(snapshot, "LOOK_TIMEOUT_S", 1.0)
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(flow(topics="orders")))
    configuration = load(file)
    async with run_fake_cluster() as cluster:
        cluster.create_topic("orders", 0)
        [broker] = cluster.brokers.values()
        delays = {
            MetadataRequest.API_KEY: 0.3,
            ListOffsetsRequest.API_KEY: 0.3,
            ListGroupsRequest.API_KEY: latest_s,
        }
        for api_key, delay_s in delays.items():
            broker.scripts[api_key] = partial(_answer_late, broker, api_key, delay_s)
        async with open_cluster(cluster.bootstrap, client_id="t") as opened:
            site = Site(name="dc1", cluster=opened)
            [of_flow] = configuration.flows
            seen = await look_at_site(site, configuration, of_flow)
    assert seen.fault == fault
    assert len(seen.ends) == (fault is None)


async def _answer_late(
    broker: FakeBroker, api_key: int, delay_s: float, header: RequestHeader, request: Any
) -> Any:
    await trio.sleep(delay_s)
    return ANSWERS[api_key](broker, header.api_version, request)


async def test_a_site_that_keeps_silent_for_the_whole_time_is_lost() -> None:
    async with answering_after(60) as site:
        began = trio.current_time()
        assert (await look_whether_lost(site, 0.5)).fault == "no answer within 0.5 s"
        assert trio.current_time() - began >= 0.5


async def test_of_a_site_that_does_not_believe_us_nobody_can_tell_whether_it_is_lost() -> None:
    """Credentials that have expired are no disaster: it may be at work."""
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:

        async def refused() -> None:
            await trio.lowlevel.checkpoint()
            raise AuthenticationFailed("wrong password")

        cluster.wait_answer = refused  # type: ignore[method-assign]
        view = await look_whether_lost(Site(name="dc1", cluster=cluster), 5)
    assert (view.is_unsure, view.fault) == (True, "wrong password")


async def test_a_site_that_refuses_connections_again_and_again_is_lost_sooner() -> None:
    address = ("127.0.0.1", free_port())
    async with open_cluster([address], client_id="t") as opened:
        began = trio.current_time()
        view = await look_whether_lost(Site(name="dc1", cluster=opened), 30)
        assert view.fault is not None
        assert trio.current_time() - began < 10
