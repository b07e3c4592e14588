"""What the commands of `failover` do and print, until they end or a signal stops them."""

import json
import signal
import sys
from collections.abc import Awaitable, Callable

import trio

from failover.journal.journal import Journal
from failover.journal.steps import PromotionKind, PromotionState, StepName
from failover.planning.plan import PromotionRequest, plan_document
from failover.promote import PromotionRefused, make_plan, open_controller, plan_lines
from failover.recover import recover
from failover.secure import secure
from failover.view.divergence import Listed, Pending, list_divergence
from failover.view.report import has_slipped, left_steps, summary
from failover.view.status import read_status, status_document, status_lines
from runtime.configuration.config import Configuration
from runtime.configuration.witness_session import open_witness
from runtime.pair.opening import open_clusters, require_pair
from runtime.process.clock import now_ms
from runtime.process.output import complain, print_line, print_nowhere
from runtime.process.patient_output import printing_aside
from runtime.process.signals import cancel_on_signal
from runtime.process.tasks import background_tasks
from runtime.program.command import Options
from runtime.program.program import ExitStatus


def show(line: str) -> None:
    """Print one line at once, so that a promotion can be watched through a pipe."""
    print_line(line)
    sys.stdout.flush()


def show_if_anybody_reads(line: str) -> None:
    """Print one line of a promotion, which goes on when a pipe is closed or a disk is full."""
    try:
        show(line)
    except OSError as fault:
        print_nowhere()
        complain(
            "failover",
            f"nothing more can be shown ({fault.strerror}); the promotion goes on to its end",
        )


async def promote(options: Options) -> int:
    """Promote a site, or resume its unfinished promotion."""
    request = _request(options)
    started_ms = now_ms()
    _require_known(options.configuration, request.site)
    async with printing_aside("failover", _show_in_process) as tell:
        async with open_controller(options.configuration, tell) as controller:
            journal = await controller.promote(request, started_ms)
        for line in summary(journal):
            if journal.state is PromotionState.DONE:
                tell(line)
            else:
                complain("failover", line)
    return exit_status(journal)


def _show_in_process(line: str) -> None:
    """Print where standard output is no file of the system; looked up late, for tests to watch."""
    show_if_anybody_reads(line)


async def abort(options: Options) -> int:
    """Take back the unfinished promotion."""
    async with printing_aside("failover", _show_in_process) as tell:
        async with open_controller(options.configuration, tell) as controller:
            journal = await controller.abort()
        for line in summary(journal):
            tell(line)
    return ExitStatus.FAILED if left_steps(journal) else ExitStatus.DONE


def exit_status(journal: Journal) -> int:
    """Return 0 for a promotion that is done, 2 for one refused at the fence, 1 for a rollback.

    1 also for one that is done, where something is on the old site alone or that is not known.
    """
    if journal.state is PromotionState.DONE:
        return ExitStatus.FAILED if has_slipped(journal) else ExitStatus.DONE
    went_past_fence = set(journal.step_states) - {
        StepName.PREFLIGHT,
        StepName.ANNOUNCE,
        StepName.FENCE,
    }
    return ExitStatus.FAILED if went_past_fence else ExitStatus.BAD_INPUT


async def plan(options: Options) -> int:
    """Print what promote would do."""
    request = _request(options)
    _require_known(options.configuration, request.site)
    decision = await make_plan(options.configuration, request)
    if options.json:
        for line in json.dumps(plan_document(decision), indent=2).splitlines():
            show(line)
        return ExitStatus.DONE
    for line in plan_lines(decision):
        show(line)
    return ExitStatus.DONE


async def status(options: Options) -> int:
    """Print roles, fences, flows and promotions."""
    coordination = options.configuration.coordination
    async with open_witness(coordination) as zookeeper:
        async with open_clusters(options.configuration) as clusters:
            seen = await require_pair(options.configuration, zookeeper, clusters)
        found = await read_status(options.configuration, zookeeper, seen.known_active)
    if options.json:
        for line in json.dumps(status_document(found), indent=2).splitlines():
            show(line)
    else:
        for line in status_lines(found):
            show(line)
    return ExitStatus.DONE


async def divergence(options: Options) -> int:
    """List what only one site has, and what was set aside; 1 where something is to be decided."""

    def tell(found: Listed | Pending | str) -> None:
        if not options.json:
            show(found if isinstance(found, str) else found.line())
        elif isinstance(found, Listed):
            show(json.dumps(found.document()))
        else:
            complain("failover", found if isinstance(found, str) else found.line())

    tally = await list_divergence(options.configuration, tell)
    said = (
        f"{tally.pending} records are on one site alone, {tally.set_aside} were set aside,"
        f" {tally.foreign} were written to a standby"
    )
    complain("failover", said) if options.json else show(said)
    return ExitStatus.FAILED if tally.pending or tally.not_looked else ExitStatus.DONE


async def secure_witness(options: Options) -> int:
    """Show which nodes of the witness others may touch, and take them back with --write."""
    is_secure = await secure(options.configuration, write=options.write, show=show)
    return ExitStatus.DONE if is_secure else ExitStatus.FAILED


async def recover_witness(options: Options) -> int:
    """Show what both clusters carry of the pair, and restore the witness with --write."""
    await recover(
        options.configuration,
        active=options.active,
        replaced=() if options.replaced is None else (options.replaced,),
        write=options.write,
        show=show,
    )
    return ExitStatus.DONE


def _request(options: Options) -> PromotionRequest:
    kind = PromotionKind.SOURCE_LOST if options.source_lost else PromotionKind.PLANNED
    return PromotionRequest(
        site=options.site, kind=kind, force=options.force, accepts_loss=options.accept_loss
    )


def _require_known(configuration: Configuration, site: str) -> None:
    if site not in configuration.clusters:
        known = ", ".join(sorted(configuration.clusters))
        raise PromotionRefused(f"unknown site {site} (the file has {known})")


async def stop_at_signals(act: Callable[[Options], Awaitable[int]], options: Options) -> int:
    """Run a command until it ends or SIGINT or SIGTERM stops it; return the exit status.

    A terminal that goes away ends no promotion: a site would stay closed with nobody at work.
    """
    if options.command.name in {"promote", "abort"}:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with trio.CancelScope() as scope:
        async with background_tasks() as tasks:
            await tasks.start(cancel_on_signal, scope)
            return await act(options)
    name = options.command.name
    if name == "serve":
        return ExitStatus.DONE
    is_noted = name in {"promote", "abort"}
    go_on = "; run the same command again to go on, or `failover abort`" if is_noted else ""
    complain("failover", f"stopped{go_on}")
    return ExitStatus.FAILED
