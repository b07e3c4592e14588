"""What the console says of the last audit's age."""

from dataclasses import replace
from pathlib import Path

import pytest

from failover.serve.console.audits import CLOCKS_DIFFER_MS, OLD_MS, AuditSeen, audit_line

NOW_MS = 1_769_846_400_000
SEEN = AuditSeen(folder=Path("audit"), answer="clean", now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("ended_ms", "said"),
    [
        (NOW_MS, None),
        (NOW_MS - OLD_MS, None),
        (NOW_MS - OLD_MS - 1, "It says nothing of what was written since."),
        (NOW_MS + CLOCKS_DIFFER_MS, None),
        (NOW_MS + CLOCKS_DIFFER_MS + 1, "A clock is wrong: its age is not known."),
    ],
)
def test_a_verdict_is_fresh_only_as_far_as_the_clocks_tell(ended_ms: int, said: str | None) -> None:
    line = audit_line(replace(SEEN, ended_ms=ended_ms))
    assert "clean" in line
    assert ("unsure" in line) == (said is not None)
    assert said is None or said in line
