"""`mirror status` on a terminal: one page, or with --watch a new one every second."""

import json
import signal
import sys
from typing import Final

import trio

from mirror.commands.status import collect, not_seen
from mirror.commands.status_table import render
from mirror.report.status import StatusReport
from runtime.configuration.config import Configuration
from runtime.process.output import complain
from runtime.program.program import ExitStatus

WATCH_S: Final = 1.0
CLEAR_SCREEN: Final = "\x1b[2J\x1b[H"


async def show_status(configuration: Configuration, *, is_watched: bool, as_json: bool) -> int:
    """Print the state of all flows; return 2 if part of it could not be seen."""
    if not is_watched:
        faults = not_seen(await _show(configuration, as_json=as_json))
        if not faults:
            return ExitStatus.DONE
        complain("mirror", f"could not see all: {'; '.join(faults)}")
        return ExitStatus.BAD_INPUT
    # Not by KeyboardInterrupt, which may be raised, and lost, in the midst of anything.
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_watch, configuration, as_json)
            async for _ in signals:
                nursery.cancel_scope.cancel()
                break
    return ExitStatus.DONE


async def _watch(configuration: Configuration, as_json: bool) -> None:  # noqa: FBT001 - a task's
    while True:
        await _show(configuration, as_json=as_json, before="" if as_json else CLEAR_SCREEN)
        await trio.sleep(WATCH_S)


async def _show(configuration: Configuration, *, as_json: bool, before: str = "") -> StatusReport:
    report = await collect(configuration)
    page = json.dumps(report) + "\n" if as_json else render(report)
    sys.stdout.write(before + page)
    sys.stdout.flush()
    return report
