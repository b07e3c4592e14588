"""Who sets the machine's clock changes what is stamped for others, and no deadline."""

import time

import pytest

from runtime.process import clock

HOURS_MS = 5 * 3_600_000


@pytest.mark.parametrize("jump_ms", [HOURS_MS, -HOURS_MS])
def test_a_clock_that_is_set_moves_no_deadline(
    monkeypatch: pytest.MonkeyPatch, jump_ms: int
) -> None:
    before_ms, true_ns = clock.now_ms(), time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: true_ns + jump_ms * 1_000_000)
    assert before_ms <= clock.now_ms() < before_ms + HOURS_MS // 2
    assert clock.wall_ms() == true_ns // 1_000_000 + jump_ms


def test_without_a_jump_both_clocks_agree() -> None:
    assert abs(clock.now_ms() - clock.wall_ms()) < HOURS_MS // 2
