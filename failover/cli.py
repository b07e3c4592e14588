"""Move a service from one site to another, step by step, and say where it stands.

Exit status: 0 done, 1 it failed or was rolled back, 2 refused.
"""

import argparse
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import trio

from failover.execute import RollbackStuck, StepFailed
from failover.exporter import serve
from failover.journal import Journal, JournalUnreadable
from failover.lease import LeaseHeld, LeaseLost
from failover.plan import Request
from failover.promote import Controller, Refused, open_controller, plan_lines
from failover.report import summary
from failover.status import read_status, status_document, status_lines
from failover.steps import PromotionKind, PromotionState, StepName
from failover.store import Superseded
from runtime.clock import now_ms
from runtime.config import Configuration, ConfigurationError, load
from runtime.logs import configure
from runtime.metrics import AddressInUse
from runtime.output import PIPE_CLOSED, print_nowhere
from runtime.signals import cancel_on_signal
from runtime.tasks import background_tasks
from runtime.witness import WitnessGarbled
from runtime.zookeeper import ZooKeeperFault, open_zookeeper

DONE: Final = 0
FAILED: Final = 1
REFUSED: Final = 2

Command: TypeAlias = Callable[[Configuration, argparse.Namespace], Awaitable[int]]

REFUSALS: Final = (
    ConfigurationError,
    Refused,
    LeaseHeld,
    JournalUnreadable,
    WitnessGarbled,
    ZooKeeperFault,
    AddressInUse,
)
FAILURES: Final = (RollbackStuck, StepFailed, LeaseLost, Superseded)


def show(line: str) -> None:
    """Print one line at once, so that a promotion can be watched through a pipe."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def show_if_anybody_reads(line: str) -> None:
    """Print one line of what must go on all the same: a pipe may be closed, a disk full."""
    try:
        show(line)
    except OSError as fault:
        print_nowhere()
        complain(f"nothing more can be shown ({fault.strerror}); this goes on to its end")


def complain(line: str) -> None:
    """Say on standard error what went wrong, if anybody listens."""
    with suppress(OSError):
        sys.stderr.write(f"failover: {line}\n")
        sys.stderr.flush()


async def promote(configuration: Configuration, options: argparse.Namespace) -> int:
    """Promote a site, or go on with its unfinished promotion."""
    request = _request(options)
    started_ms = now_ms()
    _require_known(configuration, request.site)
    async with open_controller(configuration, show_if_anybody_reads) as controller:
        return await _end(controller, partial(controller.promote, request, started_ms))


async def abort(configuration: Configuration, _: argparse.Namespace) -> int:
    """Take back the unfinished promotion."""
    async with open_controller(configuration, show_if_anybody_reads) as controller:
        journal = await controller.abort()
    for line in summary(journal):
        show_if_anybody_reads(line)
    return DONE


async def _end(_: Controller, act: Callable[[], Awaitable[Journal]]) -> int:
    journal = await act()
    for line in summary(journal):
        (show_if_anybody_reads if journal.state is PromotionState.DONE else complain)(line)
    return exit_status(journal)


def exit_status(journal: Journal) -> int:
    """Return 0 for a promotion that is done, 2 for one refused at the fence, 1 for a rollback."""
    if journal.state is PromotionState.DONE:
        return DONE
    went_past_fence = set(journal.step_states) - {
        StepName.PREFLIGHT,
        StepName.ANNOUNCE,
        StepName.FENCE,
    }
    return FAILED if went_past_fence else REFUSED


async def plan(configuration: Configuration, options: argparse.Namespace) -> int:
    """Print what promote would do."""
    request = _request(options)
    _require_known(configuration, request.site)
    for line in await plan_lines(configuration, request):
        show(line)
    return DONE


async def status(configuration: Configuration, options: argparse.Namespace) -> int:
    """Print roles, fences, flows and promotions."""
    coordination = configuration.coordination
    async with open_zookeeper(
        coordination.zookeeper, session_timeout_ms=coordination.session_timeout_ms
    ) as zookeeper:
        found = await read_status(configuration, zookeeper)
    if options.json:
        show(json.dumps(status_document(found), indent=2))
    else:
        for line in status_lines(found):
            show(line)
    return DONE


async def serve_until_stopped(configuration: Configuration, _: argparse.Namespace) -> int:
    """Serve the metrics until SIGTERM."""
    await serve(configuration)
    return DONE


def _request(options: argparse.Namespace) -> Request:
    kind = PromotionKind.SOURCE_LOST if options.source_lost else PromotionKind.PLANNED
    return Request(site=options.site, kind=kind, force=options.force)


def _require_known(configuration: Configuration, site: str) -> None:
    if site not in configuration.clusters:
        known = ", ".join(sorted(configuration.clusters))
        raise Refused(f"unknown site {site} (the file has {known})")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options; argparse itself ends the program with status 2 on bad ones."""
    parser = argparse.ArgumentParser(
        prog="failover",
        description="Move applications from one site to the other.",
        epilog="Exit status: 0 done, 1 it failed or was rolled back, 2 refused.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command, text in (
        ("promote", promote, "make a site the active one, or go on doing so"),
        ("plan", plan, "show what promote would do, and do nothing"),
        ("abort", abort, "take back a promotion that was not finished"),
        ("status", status, "show roles, fences, flows and promotions"),
        ("serve", serve_until_stopped, "serve metrics, and keep the idle site closed"),
    ):
        sub = commands.add_parser(name, help=text, description=text)
        if name in {"promote", "plan"}:
            sub.add_argument("site", metavar="SITE", help="the site to make active, as in FILE")
            sub.add_argument(
                "--source-lost",
                action="store_true",
                help="the active site is gone: what it has not mirrored is given up",
            )
            sub.add_argument(
                "--force", action="store_true", help="insist, although the source answers"
            )
        if name == "status":
            sub.add_argument("--json", action="store_true", help="as JSON")
        sub.add_argument("file", metavar="FILE", type=Path, help="the YAML configuration")
        sub.set_defaults(run=command)
    return parser.parse_args(arguments)


async def _run(command: Command, options: argparse.Namespace) -> int:
    """Run a command until it ends or a signal stops it."""
    configuration = load(options.file)
    with trio.CancelScope() as scope:
        async with background_tasks() as tasks:
            await tasks.start(cancel_on_signal, scope)
            return await command(configuration, options)
    if options.command == "serve":
        return DONE
    is_noted = options.command in {"promote", "abort"}
    go_on = "; run the same command again to go on, or `failover abort`" if is_noted else ""
    complain(f"stopped{go_on}")
    return FAILED


def main() -> int:
    """Run the program."""
    options = parse(sys.argv[1:])
    configure("failover")
    try:
        return trio.run(_run, options.run, options)
    except REFUSALS as error:
        complain(str(error))
        return REFUSED
    except FAILURES as error:
        complain(str(error))
        return FAILED
    except BrokenPipeError:
        print_nowhere()
        return PIPE_CLOSED


if __name__ == "__main__":
    sys.exit(main())
