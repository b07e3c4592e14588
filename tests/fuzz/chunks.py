"""`python -m tests.fuzz.chunks COUNT [--seed N] [--kernel FILE]`: mutated chunks for the kernel,
and as many rows of Produce requests.

Each is walked where it may be written to and where not, to the same end; one in ten by Python too,
with the same result. A chunk lies in memory of exactly its size: a sanitizer sees who leaves it.
"""

import argparse
import ctypes
import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Final

from tests.fuzz.runs import throw_runs
from tests.wire.kernel.chunks import Walked, any_walk, spoiled, walked
from wire.record_batch import CorruptBatch, iterate_batches, passing

OF_ONE: Final = 50
"""So many are made of one chunk: to build it costs ten times as much as to damage it."""
IN_PYTHON: Final = 10


def throw(kernel: ModuleType, count: int, seed: int) -> int:
    """Have so many chunks walked; return how many batches became one with others.

    Raises AssertionError naming the first that differs.
    """
    luck = random.Random(seed)
    joined = 0
    for number in range(count):
        if number % OF_ONE == 0:
            whole = any_walk(luck)
        call = whole if number % OF_ONE == 0 else _damaged(luck, whole)
        found = walked(kernel.pass_on, call, call.chunk)
        where = f"seed {seed}, chunk {number}"
        assert walked(kernel.pass_on, call, _alone(call.chunk)) == found, where
        kernel.needs_no_rebuilding(_alone(call.chunk), call.source)
        if number % IN_PYTHON == 0:
            assert walked(passing.pass_on, call, call.chunk) == found, where
        joined += sum(row.joined > 1 for row in found.rows)
    return joined


def _alone(chunk: bytes) -> memoryview:
    """Return a copy that may be written to, with nothing of Python's before or behind it."""
    return memoryview((ctypes.c_char * len(chunk)).from_buffer_copy(chunk)).cast("B")


def _damaged(luck: random.Random, whole: Walked) -> Walked:
    """Return the call with one of the chunk's batches spoiled, mostly under a right checksum."""
    batches = list(pairwise(_starts(memoryview(whole.chunk), whole.position)))
    if not batches:
        return whole
    start, stop = luck.choice(batches)
    batch = spoiled(luck, whole.chunk[start:stop])
    return whole._replace(chunk=whole.chunk[:start] + batch + whole.chunk[stop:])


def _starts(view: memoryview, position: int) -> Iterator[int]:
    """Yield where batches with a header begin, and where the last of them ends."""
    with suppress(CorruptBatch):
        yield position
        for _, batch in iterate_batches(view[position:]):
            position += len(batch)
            yield position


def load(file: Path) -> ModuleType:
    """Return the kernel that was compiled into a file."""
    loader = ExtensionFileLoader("_chunk", str(file))
    spec = spec_from_loader("_chunk", loader)
    assert spec is not None, file
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def main() -> int:
    """Throw, and say what came of it."""
    parser = argparse.ArgumentParser(prog="chunks", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--kernel", type=Path, required=True)
    given = parser.parse_args()
    kernel = load(given.kernel)
    joined = throw(kernel, given.count, given.seed)
    runs = throw_runs(kernel, given.count, given.seed)
    sys.stdout.write(f"{given.count} chunks, {joined} times joined, {kernel.WAYS}; {runs} runs\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
