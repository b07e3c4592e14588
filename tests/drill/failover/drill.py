"""Rounds of promotions under load, each with a fault, each judged when everything is quiet.

Two sets of topics are moved, each with applications and an operator of its own. A round moves one
and meets it with a fault. The other one stays, or is moved or taken back meanwhile.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Final

from runtime.process.clock import wall_ms
from tests.drill.cluster import DrillFailed
from tests.drill.failover.actor import FIRST_S, Actor, can_give_up, create_topics
from tests.drill.failover.applications import EVERY_S, run_applications
from tests.drill.failover.checker import Finding, Kind, check
from tests.drill.failover.faulting import Faulting
from tests.drill.failover.planning import (
    DISASTERS,
    HARMLESS,
    LOST,
    TAKEN_BACK,
    Fault,
    Round,
    What,
    plan_round,
)
from tests.drill.failover.stage import Stage
from tests.drill.failover.subject import SETS, Subject
from tests.failover.two_sites import pause

LEVEL_S: Final = 90.0
BETWEEN_S: Final = 1.0
TAKES_S: Final = 30.0
"""So soon the active site takes writes, once a promotion has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is drilled, and how long: no round begins after `seconds` or behind `rounds`.

    Applications that follow the active site write a record each `every_s`.
    """

    seed: int
    folder: Path
    seconds: float
    rounds: int
    open_pair: Callable[[Path], AbstractContextManager[Stage]]
    first: int = 0
    planned: Callable[[int, int], Round] = plan_round
    every_s: float = EVERY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One round and what was found behind it."""

    round: Round
    was_hit: bool
    seconds: float
    findings: Sequence[Finding]
    acked: int


def drill(options: Options, tell: Callable[[str], None]) -> list[Judged]:
    """Run rounds until the first with a finding. Raises DrillFailed where nothing could begin."""
    options.folder.mkdir(parents=True, exist_ok=True)
    judged: list[Judged] = []
    with options.open_pair(options.folder) as stage, ExitStack() as running:
        actors = [_actor(stage, running, subject, options.every_s) for subject in SETS]
        them = _Drill(stage=stage, actors=actors)
        them.wait_begun()
        end = monotonic() + options.seconds
        for number in range(options.first, options.first + options.rounds):
            if judged and (monotonic() > end or judged[-1].findings):
                break
            judged.append(them.run(options.planned(options.seed, number)))
            tell(line_of(judged[-1], options.seed))
    return judged


def line_of(judged: Judged, seed: int) -> str:
    """Return what a person reads of a round; each finding says how to repeat it."""
    at = judged.round
    hit = "" if judged.was_hit else " (not reached)"
    verdict = "FAILED" if judged.findings else "kept"
    figures = f"{judged.acked} acknowledged, {judged.seconds:.0f} s"
    lines = [f"  round {at.number}: {at}{hit}; {figures}, {verdict}"]
    lines += [
        f"    seed {seed}, round {at.number}, {at}: {finding}" for finding in judged.findings[:20]
    ]
    if judged.findings:
        repeat = f"make drill FAILOVER=1 SEED={seed} ROUNDS={at.number + 1}"
        lines.append(f"    {len(judged.findings)} findings; `{repeat}` repeats them")
    return "\n".join(lines)


def _actor(stage: Stage, running: ExitStack, subject: Subject, every_s: float) -> Actor:
    """Have the applications of one set run; the default set's come by the endpoints, too."""
    create_topics(stage, subject)
    behind = stage.behind_endpoints if subject.topic_set == "default" else None
    applications = running.enter_context(
        run_applications(stage.applications, stage.clients, behind, subject, every_s=every_s)
    )
    return Actor.of(stage, applications)


@dataclass(slots=True, kw_only=True)
class _Drill:
    """The sets that are moved, and what is done to them."""

    stage: Stage
    actors: Sequence[Actor]
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))

    def wait_begun(self) -> None:
        """Wait until records are mirrored, and the standby is closed. Raises DrillFailed."""
        deadline = monotonic() + FIRST_S
        while monotonic() < deadline:
            for one in self.actors:
                one.applications.raise_faults()
            said = self.stage.run("status")
            is_closed = said.text.count("dc2: standby, fenced") == len(self.actors)
            if is_closed and all(len(one.applications.reads) > 5 for one in self.actors):
                for one in self.actors:
                    one.applications.try_both_sites()
                    one.applications.start_plain("dc1")
                return
            pause(1.0)
        raise DrillFailed(f"nothing was mirrored in {FIRST_S:g} s:\n{said.text}")

    def run(self, at: Round) -> Judged:
        """Carry out a round and judge it."""
        began_s, from_ms = monotonic(), wall_ms()
        [main] = (one for one in self.actors if one.subject.topic_set == at.topic_set)
        [other] = (one for one in self.actors if one is not main)
        were_merging = {one.subject: one.operator.is_merging() for one in self.actors}
        if Fault.OLD_WITNESS in {at.fault, at.again}:
            self.stage.copy_witness()
            pause(BETWEEN_S)
        for one in self.actors:
            one.operator.begin_round(at.end)
        moved = _Moved(drill=self, at=at, main=main, other=other)
        findings = moved.carry_out()
        for one in self.actors:
            one.close_windows(moved.opened_by_hand)
            one.applications.start_plain(one.operator.active)
        until_ms = wall_ms()
        findings += [] if findings else self._closed_for_good()
        findings += self._settle()
        is_harmless = {at.fault, at.again} <= HARMLESS and at.what is What.PROMOTION
        is_quiet = is_harmless and at.endpoint is None and moved.beside is None
        if is_harmless and not at.hooks and moved.is_clean:
            main.note_undisturbed(from_ms)
        for one in self.actors:
            # Groups stay before what is merged late.
            once_from_ms = from_ms if is_quiet and not were_merging[one.subject] else None
            is_left_alone = is_quiet and one is other
            story = one.story(once_from_ms, (from_ms, until_ms) if is_left_alone else None)
            findings += one.named([*check(story), *one.of_clients_and_hooks()])
        for one in self.actors:
            one.applications.go_on()
        pause(BETWEEN_S)
        return Judged(
            round=at,
            was_hit=moved.was_hit,
            seconds=monotonic() - began_s,
            findings=findings,
            acked=sum(len(one.applications.acked) for one in self.actors),
        )

    def note_switches(self) -> None:
        """Keep what the witness knows of promotions of all sets."""
        for one in self.actors:
            one.operator.note_switches()

    def _closed_for_good(self) -> list[Finding]:
        """Return which active site takes no writes."""
        says = f"takes no write {TAKES_S:g} s after all promotions have ended"
        return [
            *(
                finding
                for one in self.actors
                if not one.applications.wait_taken(one.operator.active, TAKES_S)
                for finding in one.named([Finding(Kind.STUCK, one.operator.active, says)])
            )
        ]

    def _settle(self) -> list[Finding]:
        """Wait until nobody writes, all is decided and mirrored, and the groups have read it."""
        deadline = monotonic() + LEVEL_S
        for one in self.actors:
            if not one.applications.rest():
                says = "records that no site has acknowledged for a minute"
                return one.named([Finding(Kind.STUCK, says)])
        while True:
            unsettled = [(one, found) for one in self.actors if (found := one.unsettled())]
            if not unsettled:
                return []
            if monotonic() > deadline:
                shown = self.stage.run("status", program="mirror.cli")
                stuck = [
                    finding
                    for one, found in unsettled
                    for finding in one.named([Finding(Kind.STUCK, *found[0])])
                ]
                return [*stuck, Finding(Kind.STUCK, "mirror status", shown.text)]
            pause(1.0)


@dataclass(slots=True, kw_only=True)
class _Moved:
    """One round as it is carried out: `main` is moved and met by the fault."""

    drill: _Drill
    at: Round
    main: Actor
    other: Actor
    opened_by_hand: list[tuple[str, int, str]] = field(default_factory=list)
    was_hit: bool = False
    is_clean: bool = False
    """Nothing has kept the first command from its end."""
    beside: "Future[list[Finding]] | None" = None

    def carry_out(self) -> list[Finding]:
        """Move what is to be moved to its end; return what did not come to it."""
        at, main, stage = self.at, self.main, self.main.stage
        old, new = main.operator.active, main.operator.idle
        self._lose(old)
        main.give_up(at, old)
        if at.is_beside_first:
            self._begin_beside(old)
        faulting = self._faulting(at, main, old, new)
        main.stop_plain(at)
        command = main.command(at, new)
        stage.hooks.draw(at.hooks)
        self.is_clean = faulting.promote(command).status == 0
        self.was_hit = faulting.is_done
        if at.what not in TAKEN_BACK:
            stage.hooks.draw({})
        stage.bring_back(*([old] if at.what in DISASTERS else []))
        if at.again is not Fault.NOTHING and at.what not in TAKEN_BACK | {What.LEFT}:
            self._go_on_with_fault(command, old, new)
        if at.what not in DISASTERS:
            stage.bring_back()
        findings = main.named(main.end_promotion(at, command, new))
        stage.hooks.draw({})  # the other set's promotion ends with hooks that work
        if self.beside is not None:
            findings += self.other.named(self.beside.result())
        stage.bring_back()
        return findings

    def _lose(self, old: str) -> None:
        """Take the old site away as the round says."""
        if self.at.what is What.DISASTER:
            self.main.stage.sites[old].kill()
        elif self.at.what in LOST:
            self.main.stage.network.cut(old)

    def _faulting(self, at: Round, actor: Actor, old: str, new: str) -> Faulting:
        def begin_beside() -> None:
            self._begin_beside(old)

        return Faulting(
            console=actor.console,
            applications=actor.applications,
            round=at,
            old=old,
            new=new,
            note_switches=self.drill.note_switches,
            made=actor.made,
            deleted=actor.deleted,
            opened=self.opened_by_hand,
            at_fault=begin_beside if actor is self.main else None,
        )

    def _begin_beside(self, lost: str) -> None:
        """Begin to move the other set in a thread, once a round."""
        if self.at.beside is None or self.beside is not None:
            return
        if can_give_up(self.at.beside, self.other, lost):
            self.beside = self.drill.threads.submit(self._move_other, self.at.beside)

    def _move_other(self, at: Round) -> list[Finding]:
        other = self.other
        old, new = other.operator.active, other.operator.idle
        other.give_up(at, old)
        other.stop_plain(at)
        command = other.command(at, new)
        self._faulting(at, other, old, new).promote(command)
        return other.end_promotion(at, command, new)

    def _go_on_with_fault(self, command: Sequence[str], old: str, new: str) -> None:
        """Give the command once more, and have another fault meet that."""
        is_open = self.main.operator.look()
        if is_open or self.main.operator.active != new:
            again = replace(self.at, fault=self.at.again, again=Fault.NOTHING)
            self._faulting(again, self.main, old, new).promote(command)
