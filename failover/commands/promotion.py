"""`failover promote`, `plan` and `abort`."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial

from failover.commands.running import show
from failover.commands.set_choice import choose_sets
from failover.journal.journal import Journal
from failover.journal.steps import PromotionKind, PromotionState, StepName
from failover.planning.agreed import question
from failover.planning.plan import Plan, PromotionRequest, Resume
from failover.promote import (
    CANNOT_PROMOTE,
    PromotionRefused,
    make_plan,
    open_controller,
    plan_lines,
    promotion_document,
)
from failover.view.promotion_report import report_document
from failover.view.report import has_slipped, hooks_left, left_steps, summary
from runtime.configuration.config import Configuration
from runtime.process.clock import now_ms
from runtime.process.output import complain, print_nowhere
from runtime.process.patient_output import Telling, printing_aside
from runtime.program.agreement import can_ask, wait_agreement
from runtime.program.command import Options
from runtime.program.program import ExitStatus


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
    _require_known(options.configuration, request.site)
    chosen = await choose_sets(options)
    agreed: Sequence[Plan | Resume | None] = [None] * len(chosen)
    if can_ask() and not options.yes:
        options.is_asking = True
        tell = partial(complain, "failover") if options.json else show
        agreed = await _agreements(chosen, request, tell)
        options.is_asking = False
    started_ms = now_ms()
    moved: list[str] = []
    journals: list[Journal] = []
    try:
        for of_set, of_plan in zip(chosen, agreed, strict=True):
            try:
                async with _telling(options) as tell:
                    journal = await _promote(of_set, request, started_ms, of_plan, tell)
            except CANNOT_PROMOTE as fault:
                if not moved:
                    raise
                complain("failover", f"set {of_set.topic_set}: {fault}")
                break
            journals.append(journal)
            if journal.state is not PromotionState.DONE:
                break
            moved.append(str(of_set.topic_set))
    finally:
        if len(chosen) > 1 and len(moved) < len(chosen):
            stay = [str(one.topic_set) for one in chosen][len(moved) :]
            told = f"moved: {', '.join(moved) or 'no set'}; not moved: {', '.join(stay)}"
            complain("failover", told)
    if options.json:
        reports = [
            {
                **({} if one.topic_set is None else {"set": one.topic_set}),
                **report_document(journal),
            }
            for one, journal in zip(chosen, journals, strict=False)
        ]
        show(json.dumps(reports[0] if len(chosen) == 1 else reports))
    is_part = 0 < len(moved) < len(chosen)
    return ExitStatus.FAILED if is_part else max(map(exit_status, journals))


def _telling(options: Options) -> AbstractAsyncContextManager[Telling]:
    """Give what tells of the steps: on standard error where JSON stands on standard output."""
    if options.json:
        return printing_aside("failover", partial(complain, "failover"), sys.stderr)
    return printing_aside("failover", _show_in_process)


async def _agreements(
    chosen: Sequence[Configuration], request: PromotionRequest, tell: Callable[[str], None]
) -> Sequence[Plan | Resume]:
    """Show what would be done, and return it if somebody at the terminal agrees to all of it.

    Nobody holds the lease meanwhile. Raises PromotionRefused, and NotAgreed.
    """
    plans = []
    for of_set in chosen:
        plans.append(await make_plan(of_set, request))
        if of_set.topic_set is not None:
            tell(f"set {of_set.topic_set}:")
        for line in plan_lines(plans[-1], of_set, request):
            tell(line)
    await wait_agreement(" ".join(map(question, plans)))
    return plans


async def _promote(
    configuration: Configuration,
    request: PromotionRequest,
    started_ms: int,
    agreed: Plan | Resume | None,
    tell: Telling,
) -> Journal:
    """Promote a site for one set of topics, tell how it went, and return the journal."""
    if configuration.topic_set is not None:
        tell(f"set {configuration.topic_set}:")
    async with open_controller(configuration, tell, at_step=tell.doing) as controller:
        journal = await controller.promote(request, started_ms, agreed)
    for line in summary(journal, configuration.topic_set):
        if journal.state is PromotionState.DONE:
            tell(line)
        else:
            complain("failover", line)
    return journal


def _show_in_process(line: str) -> None:
    """Print where standard output is no file of the system; looked up late, for tests to watch."""
    show_if_anybody_reads(line)


async def abort(options: Options) -> int:
    """Take back the unfinished promotion."""
    async with _telling(options) as tell:
        async with open_controller(options.configuration, tell, at_step=tell.doing) as controller:
            journal = await controller.abort()
        for line in summary(journal, options.configuration.topic_set):
            tell(line)
    if options.json:
        show(json.dumps(report_document(journal)))
    is_whole = not left_steps(journal) and not hooks_left(journal)
    return ExitStatus.DONE if is_whole else ExitStatus.FAILED


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
    documents: list[Mapping[str, object]] = []
    for of_set in await choose_sets(options):
        decision = await make_plan(of_set, request)
        document = promotion_document(decision, of_set, request)
        name = of_set.topic_set
        documents.append(document if name is None else {"set": name, **document})
        if not options.json:
            lines = plan_lines(decision, of_set, request, options.lag_over)
            for line in lines if name is None else (f"set {name}:", *lines):
                show(line)
    if options.json:
        found = documents[0] if len(documents) == 1 else documents
        for line in json.dumps(found, indent=2).splitlines():
            show(line)
    return ExitStatus.DONE


def _request(options: Options) -> PromotionRequest:
    kind = PromotionKind.SOURCE_LOST if options.source_lost else PromotionKind.PLANNED
    return PromotionRequest(
        site=options.site,
        kind=kind,
        force=options.force,
        accepts_loss=options.accept_loss,
        without_hooks=options.without_hooks,
        despite_hold=options.despite_hold,
    )


def _require_known(configuration: Configuration, site: str) -> None:
    if site not in configuration.clusters:
        known = ", ".join(sorted(configuration.clusters))
        raise PromotionRefused(f"unknown site {site} (the file has {known})")
