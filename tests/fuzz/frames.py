"""How many frames are tried, and which of them may be sent to a broker that lives."""

import os

from tests.fuzz.spared import is_costly, is_order

FRAMES = int(os.environ.get("FUZZ_FRAMES", "4000"))
SEED = int(os.environ.get("FUZZ_SEED", "20"))


def is_harmless(frame: bytes) -> bool:
    return not is_order(frame) and not is_costly(frame)
