"""What compares is measured with all that it starts, and says why it could not."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bench.measure.ledger import RunFailed
from tests.bench.stage.audited import Auditor

ANSWERS = """
import subprocess, sys
child = "import time; began = time.process_time()\\nwhile time.process_time() - began < 0.4: pass"
for topic in sys.stdin:
    if topic.strip() == "fails":
        raise ValueError("no such thing")
    subprocess.run([sys.executable, "-c", child + "\\ntime.sleep(0.3)"], check=True)
    print("done" if topic.strip() == "equal" else "3 digests differ", flush=True)
"""


@contextmanager
def auditor(folder: Path) -> Iterator[Auditor]:
    started = Auditor(command=[sys.executable, "-c", ANSWERS], folder=folder, reader="python")
    started.start()
    try:
        yield started
    finally:
        started.stop()


def test_what_children_take_is_counted_for_each_topic(tmp_path: Path) -> None:
    with auditor(tmp_path) as started:
        for _ in range(2):
            cost = started.compare("equal", 30)
            assert 0.3 < cost.cpu_s < 0.79, "what the one before it took is not in it"
            assert cost.reader_bytes > 1_000_000


def test_what_is_not_equal_or_fails_is_no_figure_but_a_reason(tmp_path: Path) -> None:
    with auditor(tmp_path) as started:
        with pytest.raises(RunFailed, match="other: 3 digests differ"):
            started.compare("other", 30)
        with pytest.raises(RunFailed, match="ValueError: no such thing"):
            started.compare("fails", 30)


def test_what_takes_too_long_is_no_figure(tmp_path: Path) -> None:
    with auditor(tmp_path) as started, pytest.raises(RunFailed, match="not compared in time"):
        started.compare("equal", 0.1)
