"""What a command takes is added up over all processes that it starts."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.audits import TINY, Cost, Data, measure, tell_cost
from tests.bench.measure.workloads import Workload

BURNS = """
import subprocess, sys, time
child = "import time; began = time.process_time()\\nwhile time.process_time() - began < 0.4: pass"
subprocess.run([sys.executable, "-c", child], check=True)
time.sleep(0.3)
"""


def test_what_children_take_is_counted(tmp_path: Path) -> None:
    cost = measure([sys.executable, "-c", BURNS], tmp_path)
    assert cost.cpu_s > 0.2, "all but what the child took behind the last look at it"
    assert cost.worker_bytes > 1_000_000


def test_a_command_that_fails_is_named_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no such thing"):
        measure([sys.executable, "-c", "raise ValueError('no such thing')"], tmp_path)


def test_the_first_of_a_system_is_its_fixed_price(capsys: pytest.CaptureFixture[str]) -> None:
    fixed: dict[str, float] = {}
    tell_cost(Data(name="tiny", workload=TINY), "ours", _cost(17.0), fixed)
    more = Data(name="b-60", workload=_larger())
    tell_cost(more, "ours", _cost(27.0), fixed)
    tell_cost(more, "ours", _cost(16.5), fixed)
    captured = capsys.readouterr()
    told = (captured.out + captured.err).splitlines()
    assert fixed == {"ours": 17.0}
    assert "10.0 behind the fixed price" in told[1]
    assert "records/s a core" in told[1]
    assert "so no rate" in told[2]


def _cost(cpu_s: float) -> Cost:
    return Cost(cpu_s=cpu_s, seconds=1, worker_bytes=0)


def _larger() -> Workload:
    return replace(TINY, data_bytes=1_000_000)
