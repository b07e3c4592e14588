"""Mutated chunks crash no kernel; with FUZZ_CHUNKS=n (`make fuzz`) sanitizers look on, too."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from hatch_build import compile_kernel
from tests.fuzz.chunks import throw
from tests.fuzz.runs import throw_runs

kernel = pytest.importorskip("wire.kernel._chunk", reason="the chunk kernel was not built")
CHECKOUT: Final = Path(__file__).parents[2]
CHUNKS: Final = int(os.environ.get("FUZZ_CHUNKS", "2000"))
SEED: Final = int(os.environ.get("FUZZ_SEED", "20"))
SANITIZED_SHARE: Final = 5
"""Of all of them: looked on, it takes so many times as long."""
TIMEOUT_S: Final = 3_600
SANITIZERS: Final = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")


def test_mutated_chunks_crash_nothing_and_become_the_same_as_in_python() -> None:
    assert throw(kernel, CHUNKS, SEED) > CHUNKS // 50, "most chunks never come to be joined"


def test_mutated_requests_crash_nothing_and_are_read_as_in_python() -> None:
    assert throw_runs(kernel, CHUNKS, SEED) > CHUNKS // 20, "most rows begin with no plain request"


@pytest.mark.skipif("FUZZ_CHUNKS" not in os.environ, reason="`make fuzz` does it")
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    why_not = compile_kernel(tmp_path, SANITIZERS)
    library = subprocess.run(
        [os.environ.get("CC", "gcc"), "-print-file-name=libasan.so"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    if why_not is not None or not Path(library).is_absolute():
        pytest.skip(f"no sanitizers: {why_not or library}")
    [file] = tmp_path.glob("_chunk*")
    command = [sys.executable, "-m", "tests.fuzz.chunks", str(CHUNKS // SANITIZED_SHARE)]
    ended = subprocess.run(
        [*command, "--kernel", str(file), "--seed", str(SEED + 1)],
        cwd=CHECKOUT,
        env={
            **os.environ,
            "LD_PRELOAD": library,
            "PYTHONMALLOC": "malloc",
            "ASAN_OPTIONS": "detect_leaks=0",
        },
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4_000:]
