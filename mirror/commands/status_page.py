"""`mirror status`: one page, or with --watch a new one every second."""

import json
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

from mirror.commands.status import collect, not_seen
from mirror.commands.status_choice import StatusChoice
from mirror.commands.status_table import status_parts
from mirror.report.status import StatusReport
from runtime.configuration.config import Configuration
from runtime.process.output import complain, is_terminal
from runtime.program.page import Part, show_page
from runtime.program.program import ExitStatus

WATCH_S: Final = 1.0


async def show_status(
    configuration: Configuration, choice: StatusChoice, *, is_watched: bool, as_json: bool
) -> int:
    """Print the state of all flows; return 2 if part of it could not be seen."""
    if not is_watched:
        report = await collect(configuration)
        if as_json:
            _show_json(report, choice)
        else:
            show_page(status_parts(report, choice))
        faults = not_seen(report)
        if not faults:
            return ExitStatus.DONE
        complain("mirror", f"could not see all: {'; '.join(faults)}")
        return ExitStatus.BAD_INPUT
    # Not by KeyboardInterrupt, which may be raised, and lost, in the midst of anything.
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_watch, configuration, choice, as_json)
            async for _ in signals:
                nursery.cancel_scope.cancel()
                break
    return ExitStatus.DONE


async def _watch(configuration: Configuration, choice: StatusChoice, as_json: bool) -> None:  # noqa: FBT001 - a task's
    """Show page after page: in place on a terminal, else one behind the other."""
    with _page_after_page(is_live=not as_json and is_terminal()) as show:
        while True:
            report = await collect(configuration)
            if as_json:
                _show_json(report, choice)
            else:
                show(status_parts(report, choice))
            await trio.sleep(WATCH_S)


@contextmanager
def _page_after_page(*, is_live: bool) -> Iterator[Callable[[Iterable[Part]], None]]:
    if not is_live:
        yield show_page
        return
    from runtime.program.terminal_page import live_page

    with live_page() as show:
        yield show


def _show_json(report: StatusReport, choice: StatusChoice) -> None:
    sys.stdout.write(f"{json.dumps(choice.of_report(report))}\n")
    sys.stdout.flush()
