"""Standard output whose reader goes away before all is said, as `| head` does."""

import os
import sys
from typing import Final

PIPE_CLOSED: Final = 141
"""The exit status of who was told so, as shells have it of what SIGPIPE ends."""


def print_nowhere() -> None:
    """Drop what is still to be printed, also what the interpreter itself prints when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
