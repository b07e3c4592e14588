"""What members of the drill's group may cost one another fits into what the group is promised."""

from pathlib import Path

from tests.drill.drill import Options
from tests.drill.members import REBALANCE_MS, SESSION_MS


def test_the_group_has_time_for_a_dead_member_and_then_one_that_hangs(tmp_path: Path) -> None:
    """One after the other, as the second may hang in the rebalance because of the first."""
    promised_ms = Options(seed=1, seconds=1, folder=tmp_path).group_s * 1_000
    assert promised_ms * 2 / 3 >= SESSION_MS + REBALANCE_MS, "and a third for a busy machine"
