"""Twelve seconds of `make drill`, for whoever runs the tests; the seed is the same every time."""

import os
from pathlib import Path

import pytest

from tests.drill.drill import TRANSACTORS, Options, drill, report
from tests.drill.members import CLASSIC

pytestmark = pytest.mark.integration

SECONDS = float(os.environ.get("DRILL_SECONDS", "12"))
RATE = 150
"""Records a second of each producer; the faults are those of `make drill`, which has 400."""
SEED = int(os.environ.get("DRILL_SEED", "1060"))


@pytest.mark.story
async def test_brokers_under_faults_lose_nothing_double_nothing_and_change_nothing(
    tmp_path: Path,
) -> None:
    options = Options(
        seed=SEED, seconds=SECONDS, folder=tmp_path / "drill", rate=RATE, groups=(CLASSIC,)
    )  # the other group's processes are spared: `make drill` has both
    result = await drill(options, print)
    said = "\n".join(report(result, options))
    assert result.offences == [], said
    assert result.died == [], said
    assert len(result.story.acked) > 1_000, said
    assert result.story.aborted, said
    assert any(ack.who in TRANSACTORS for ack in result.story.acked), said
