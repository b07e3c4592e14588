"""A flood writes few lines, none of them long; a calm broker writes all."""

from broker.line_budget import BURST_LINES, LINES_PER_S, LONGEST_LINE, LineBudget


def said(budget: LineBudget, count: int, now_s: float) -> list[str]:
    lines = [budget.line(f"line {number}", now_s) for number in range(count)]
    return [line for line in lines if line is not None]


def test_a_flood_is_cut_and_counted() -> None:
    budget = LineBudget()
    assert len(said(budget, 10_000, 100.0)) == BURST_LINES
    assert said(budget, 1, 100.0) == []
    assert said(budget, 1, 101.0) == [f"line 0 ({10_001 - BURST_LINES} more before it not logged)"]
    assert len(said(budget, 100, 101.0)) == LINES_PER_S - 1


def test_a_line_now_and_then_is_always_said_and_nothing_is_saved_up_beyond_a_burst() -> None:
    budget = LineBudget()
    assert all(said(budget, 1, float(second)) == ["line 0"] for second in range(200))
    assert len(said(budget, 1_000, 10_000.0)) == BURST_LINES


def test_what_a_client_sent_does_not_fill_the_log() -> None:
    line = LineBudget().line("x" * 32_767, 0.0)
    assert line == "x" * LONGEST_LINE + "..."
