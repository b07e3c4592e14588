"""`failover` as a process that stands still behind each step until its parent says a word.

So a fault comes between two steps for certain: `python -m tests.drill.failover.controller promote`.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from failover.cli import PROGRAM
from failover.commands import promotion
from failover.journal.steps import StepName
from runtime.process.patient_output import Telling, TellingBy


@asynccontextmanager
async def _showing(*_: object) -> AsyncIterator[Telling]:
    yield TellingBy(_show)


def _show(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    if line.split(maxsplit=1)[0] in {*StepName}:
        sys.stdin.readline()


def main() -> int:
    """Run the program and return its exit status."""
    vars(promotion)["printing_aside"] = _showing
    return PROGRAM.main()


if __name__ == "__main__":
    sys.exit(main())
