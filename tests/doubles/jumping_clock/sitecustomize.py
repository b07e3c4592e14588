"""On the module path of a program: its wall clock goes by a file, as if somebody had set it.

JUMPING_CLOCK names the file, which holds the seconds by which the clock is wrong.
"""

import os
import time
from pathlib import Path

_FILE = Path(os.environ["JUMPING_CLOCK"])
_time_ns = time.time_ns


def _jumping_ns() -> int:
    return _time_ns() + int(_FILE.read_text() or 0) * 1_000_000_000


time.time_ns = _jumping_ns
time.time = lambda: _jumping_ns() / 1_000_000_000  # noqa: TID251 - what is replaced
