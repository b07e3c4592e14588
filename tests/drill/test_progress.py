"""Following histories while their clients write them."""

from pathlib import Path

import pytest

from tests.drill.history import Read, line_of
from tests.drill.workload import Progress


def line(log: str, at_s: float) -> str:
    return line_of(Read(at_s=at_s, who="c", log=log, offset=0, content="x"))


@pytest.mark.parametrize("written", ["", line("t-0", 1.0), line("t-0", 1.0) * 2_000])
@pytest.mark.parametrize("cut", [0, 30])
def test_what_was_skipped_is_left_out_and_a_line_half_written_then_is_not(
    tmp_path: Path, written: str, cut: int
) -> None:
    file, late = tmp_path / "c.jsonl", line("t-1", 2.0)
    file.write_text(written + late[:cut])
    progress = Progress(tmp_path, ["c"])
    progress.skip()
    file.write_text(written + late + line("t-2", 3.0))
    progress.follow()
    assert progress.logs("c", 0.0) == {"t-1", "t-2"}
