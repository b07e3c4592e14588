"""Collections pass over what a broker holds for good."""

import subprocess
import sys

FREEZE = """
import gc

import trio
from trio.testing import MockClock

from broker.garbage import THRESHOLDS, freeze_what_stays

held = [object()]


async def freeze_while_the_controller_speaks():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(freeze_what_stays)
        await trio.sleep(20)
        held.append([held])


trio.run(freeze_while_the_controller_speaks, clock=MockClock(autojump_threshold=0))
left = gc.get_objects()
assert not any(one is held or one is held[1] for one in left), "still looked at"
assert gc.get_freeze_count() > 10 * len(left)
assert gc.get_threshold() == THRESHOLDS
"""


def test_what_is_there_when_a_broker_has_settled_is_not_looked_at_again() -> None:
    """In a process of its own: to freeze is for good."""
    ended = subprocess.run(
        [sys.executable, "-c", FREEZE], capture_output=True, text=True, timeout=180, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
