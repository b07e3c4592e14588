"""How long the commands about positions may take: each step is bounded, their number is not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from mirror.commands import positions as position_commands
from mirror.commands.group_rows import Exactness, GroupRow
from mirror.commands.position_words import Export
from mirror.commands.positions import DONE, STEP_TIMEOUT_S, CommandFailed, PositionOptions, offsets
from tests.mirror.building import CONFIG

GROUPS = [f"g{number}" for number in range(20)]
ASKED = PositionOptions(flow=None, as_json=False)


def row_of(group: str) -> GroupRow:
    return GroupRow(
        group=group,
        topic="orders",
        partition=0,
        source_offset=5,
        is_last_known=False,
        source_lag=0,
        target_offset=5,
        translated=5,
        exactness=Exactness.EXACT,
        reread=0,
        skipped=None,
        applied_ms=None,
    )


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Have clusters that take `pause_s` for each step; return that, and a configuration."""
    clusters = SimpleNamespace(
        pause_s=0.0,
        configuration=SimpleNamespace(flows=(CONFIG,), clusters={"dc1": None, "dc2": None}),
    )

    @asynccontextmanager
    async def open_links(*_: object) -> AsyncIterator[None]:
        yield None

    async def observe(*_: object) -> None:
        await trio.sleep(clusters.pause_s)

    async def known_groups(*_: object) -> list[str]:
        await trio.sleep(clusters.pause_s)
        return GROUPS

    async def observe_group(_flow: Any, _links: Any, _found: Any, group: str) -> list[GroupRow]:
        await trio.sleep(clusters.pause_s)
        return [row_of(group)]

    @asynccontextmanager
    async def open_writers(_: object) -> AsyncIterator[None]:
        yield None

    for step in (open_links, open_writers, observe, known_groups, observe_group):
        monkeypatch.setattr(position_commands, step.__name__, step)
    return clusters


async def test_an_export_of_many_groups_takes_the_time_that_it_needs(
    slow: SimpleNamespace,
    capsys: pytest.CaptureFixture[str],
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    slow.pause_s = STEP_TIMEOUT_S / 2
    assert await offsets(slow.configuration, Export(groups=()), ASKED) == DONE
    assert capsys.readouterr().out == "".join(f"{group},orders,0,5\n" for group in GROUPS)


async def test_a_step_without_an_answer_ends_an_export(
    slow: SimpleNamespace,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    slow.pause_s = STEP_TIMEOUT_S + 1
    with pytest.raises(CommandFailed, match="no answer within 60 s"):
        await offsets(slow.configuration, Export(groups=()), ASKED)
