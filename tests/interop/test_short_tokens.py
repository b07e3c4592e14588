"""Tokens of 20 s for 45 s; `make drill TOKENS=1 SECONDS=600` takes longer."""

from pathlib import Path

import trio

from tests.drill.tokens.drill import Options, drill, offences

MOST_GAP_S = 5.0
"""On a machine that is busy with other tests."""


async def test_nothing_waits_and_nobody_is_refused_while_tokens_end(tmp_path: Path) -> None:
    with trio.fail_after(400):
        drilled = await drill(Options(folder=tmp_path, seconds=45), lambda _: None)
    assert offences(drilled, MOST_GAP_S) == []
