"""Mutated requests of every API and version against a real broker: no mistake, no harm."""

import logging
import random
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from broker.apis.table import APIS
from broker.context import Call
from tests.fuzz import inside
from tests.fuzz.frames import FRAMES, SEED, is_harmless
from tests.fuzz.inside import KEPT, Throwing, broker_inside, led, prepare
from tests.fuzz.spared import OBEYED, is_order
from wire.messages.heartbeat import HeartbeatRequest

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _only_mistakes_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


async def test_mutated_requests_of_every_api_meet_no_mistake_and_do_no_harm(
    tmp_path: Path, empty_zookeeper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    luck = random.Random(SEED)
    data = tmp_path / "logs"
    async with broker_inside(data, empty_zookeeper, monkeypatch) as node:
        kept = await prepare(node)
        outcome = await Throwing(node, luck, is_harmless).throw(FRAMES)
        assert outcome.faults[:3] == []
        assert outcome.answered > FRAMES / 10
        asked = {api.name for key, api in APIS.items() if key not in OBEYED}
        assert set(node.metrics.latency) >= asked
        assert (await led(node, KEPT)).read(0, 2**20) == kept
    async with broker_inside(data, empty_zookeeper, monkeypatch) as node:  # it can read all of it
        assert (await led(node, KEPT)).read(0, 2**20) == kept
        throwing = Throwing(node, luck, is_order)
        orders = await throwing.throw(FRAMES // 10, replaces_deleted=False)
        assert orders.faults[:3] == []
        assert set(node.metrics.latency) >= {APIS[key].name for key in OBEYED}


async def test_a_handler_that_fails_is_found_with_the_frame_that_made_it_fail(
    tmp_path: Path, empty_zookeeper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(request: HeartbeatRequest, call: Call) -> Any:  # noqa: ARG001
        raise KeyError("planted")

    heartbeat = APIS[HeartbeatRequest.API_KEY]
    planted = type(heartbeat)(
        name="Heartbeat",
        request=HeartbeatRequest,
        handle=fail,
        guard=heartbeat.guard,
        versions=heartbeat.versions,
        may_wait=True,
    )
    table = MappingProxyType({**APIS, HeartbeatRequest.API_KEY: planted})
    monkeypatch.setattr(inside, "APIS", table)
    async with broker_inside(tmp_path / "logs", empty_zookeeper, monkeypatch) as node:
        outcome = await Throwing(node, random.Random(SEED), is_harmless).throw(500)
    assert outcome.faults
    for fault in outcome.faults:
        *_, said, frame = fault.splitlines()
        assert said == "KeyError: 'planted'"
        assert bytes.fromhex(frame)[4:6] == b"\x00\x0c"
