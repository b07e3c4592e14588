"""Rounds of promotions under load, each with a fault, each judged when everything is quiet."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from failover.client.faults import code_of
from runtime.process.clock import wall_ms
from tests.drill.cluster import DrillFailed
from tests.drill.failover.applications import (
    COMPACTED,
    FORWARDED_GROUP,
    GROUP,
    PLAIN_GROUP,
    TOPIC,
    Applications,
    run_applications,
)
from tests.drill.failover.checker import Finding, Kind, check
from tests.drill.failover.faulting import Faulting
from tests.drill.failover.hook_checker import check_hooks
from tests.drill.failover.logs import lags_of, read_positions, read_site
from tests.drill.failover.operator import Operator
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
from tests.drill.failover.story import Story, Window
from tests.failover.two_sites import pause

PARTITIONS: Final = 2
LEVEL_S: Final = 90.0
FIRST_S: Final = 60.0
BETWEEN_S: Final = 1.0
TAKES_S: Final = 30.0
"""So soon the active site takes writes, once a promotion has ended."""
CLOSED_S: Final = 25.0
"""So soon an idle site is closed that is back in reach, or was opened by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is drilled, and how long: no round begins after `seconds` or behind `rounds`."""

    seed: int
    folder: Path
    seconds: float
    rounds: int
    open_pair: Callable[[Path], AbstractContextManager[Stage]]
    first: int = 0
    planned: Callable[[int, int], Round] = plan_round


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
    with options.open_pair(options.folder) as stage:
        _create_topics(stage)
        behind = stage.behind_endpoints
        with run_applications(stage.applications, stage.clients, behind) as applications:
            operator = Operator(stage=stage, applications=applications)
            them = _Drill(stage=stage, applications=applications, operator=operator)
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


def _create_topics(stage: Stage) -> None:
    admin = AdminClient({**stage.clients["dc1"], "log_level": 0})
    compacted = NewTopic(COMPACTED, 1, 1, config={"cleanup.policy": "compact"})
    for topic, created in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1), compacted]).items():
        try:
            created.result(FIRST_S)
        except KafkaException as error:
            raise DrillFailed(f"topic {topic}: {error}") from error


@dataclass(slots=True, kw_only=True)
class _Drill:
    """What lasts over rounds."""

    stage: Stage
    applications: Applications
    operator: Operator
    windows: list[Window] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)
    undisturbed: set[int] = field(default_factory=set)
    """When promotions were begun whose controllers nobody disturbed."""

    def wait_begun(self) -> None:
        """Wait until records are mirrored, and the standby is closed. Raises DrillFailed."""
        deadline = monotonic() + FIRST_S
        while monotonic() < deadline:
            self.applications.raise_faults()
            said = self.stage.run("status")
            if "dc2: standby, fenced" in said.text and len(self.applications.reads) > 5:
                self.applications.try_both_sites()
                self.applications.start_plain("dc1")
                return
            pause(1.0)
        raise DrillFailed(f"nothing was mirrored in {FIRST_S:g} s:\n{said.text}")

    def run(self, at: Round) -> Judged:
        """Carry out a round and judge it."""
        began_s, from_ms = monotonic(), wall_ms()
        is_merging = self.operator.is_merging()
        if Fault.OLD_WITNESS in {at.fault, at.again}:
            self.stage.copy_witness()
            pause(BETWEEN_S)
        old, new = self.operator.active, self.operator.idle
        self.operator.begin_round(at.end)
        opened = self._lose(at, old)
        faulting = self._faulting(at, old, new, opened)
        self._stop_plain(at)
        command = self._command(at, new)
        self.stage.hooks.draw(at.hooks)
        first = faulting.promote(command)
        if at.what not in TAKEN_BACK:
            self.stage.hooks.draw({})
        self.stage.bring_back(*([old] if at.what in DISASTERS else []))
        again = at.again
        if again is not Fault.NOTHING and at.what not in TAKEN_BACK | {What.LEFT}:
            self._go_on_with_fault(at, command, old, new, opened)
        findings = self._end(at, command, new)
        self.stage.hooks.draw({})
        self.stage.bring_back()
        self._close_windows(opened)
        self.applications.start_plain(self.operator.active)
        if not findings and not self.applications.wait_taken(self.operator.active, TAKES_S):
            says = f"takes no write {TAKES_S:g} s after its promotion has ended"
            findings.append(Finding(Kind.STUCK, self.operator.active, says))
        findings += self._settle()
        is_harmless = {at.fault, at.again} <= HARMLESS and at.what is What.PROMOTION
        is_quiet = is_harmless and not is_merging  # groups stay before what is merged late
        is_quiet = is_quiet and at.endpoint is None
        if is_harmless and not at.hooks and first.status == 0:
            begun = (started_ms for started_ms, _ in self.operator.journals)
            self.undisturbed.update(one for one in begun if one >= from_ms)
        findings += check(self._story(from_ms if is_quiet else None))
        findings += self._of_clients_and_hooks()
        self.applications.go_on()
        pause(BETWEEN_S)
        return Judged(
            round=at,
            was_hit=faulting.is_done,
            seconds=monotonic() - began_s,
            findings=findings,
            acked=len(self.applications.acked),
        )

    # --- a round's parts ---

    def _command(self, at: Round, new: str) -> list[str]:
        lost = ["--source-lost", "--accept-loss", "--force"] if at.what in LOST else []
        return ["promote", new, *lost]

    def _lose(self, at: Round, old: str) -> list[tuple[str, int, str]]:
        """Take the old site away as the round says; it may take writes when it is back."""
        if at.what is What.DISASTER:
            self.stage.sites[old].kill()
        elif at.what in LOST:
            self.stage.network.cut(old)
        return [(old, wall_ms(), at.what.value)] if at.what in LOST else []

    def _faulting(
        self, at: Round, old: str, new: str, opened: list[tuple[str, int, str]]
    ) -> Faulting:
        return Faulting(
            stage=self.stage,
            applications=self.applications,
            round=at,
            old=old,
            new=new,
            note_switches=self.operator.note_switches,
            made=self.made,
            deleted=self.deleted,
            opened=opened,
        )

    def _stop_plain(self, at: Round) -> None:
        """Have the plain consumer leave, at once or while the promotion waits for it."""
        if at.what in LOST or not at.plain_stays_s:
            self.applications.start_plain(None)
        else:
            self.applications.stop_plain_after(at.plain_stays_s)

    def _go_on_with_fault(
        self,
        at: Round,
        command: Sequence[str],
        old: str,
        new: str,
        opened: list[tuple[str, int, str]],
    ) -> None:
        """Give the command once more, and have another fault meet that."""
        is_open = self.operator.look()
        if is_open or self.operator.active != new:
            again = replace(at, fault=at.again, again=Fault.NOTHING)
            self._faulting(again, old, new, opened).promote(command)

    def _end(self, at: Round, command: Sequence[str], new: str) -> list[Finding]:
        """Have the promotion come to its end."""
        if at.what in DISASTERS:
            ended = self.operator.promote(command, new)
        else:
            self.stage.bring_back()
            if at.what in TAKEN_BACK:
                ended = self.operator.take_back(new)
            elif at.what is What.LEFT:
                ended = self.operator.wait_ended()
            else:
                ended = self.operator.promote(command, new)
        return [] if ended is None else [Finding(Kind.STUCK, " ".join(ended.command), ended.text)]

    def _close_windows(self, opened: Sequence[tuple[str, int, str]]) -> None:
        until_ms = wall_ms() + int(1000 * CLOSED_S)
        for site, from_ms, why in opened:
            self.windows.append(Window(site=site, from_ms=from_ms, until_ms=until_ms, why=why))

    def _settle(self) -> list[Finding]:
        """Wait until nobody writes, all is decided and mirrored, and the groups have read it."""
        deadline = monotonic() + LEVEL_S
        if not self.applications.rest():
            return [Finding(Kind.STUCK, "records that no site has acknowledged for a minute")]
        while True:
            is_open = self.operator.look()
            is_decided = self.operator.decide()
            is_gone = self._delete_what_was_deleted()
            missing = self._missing()
            if is_decided and is_gone and not is_open and not missing:
                return []
            if monotonic() > deadline:
                stuck = missing or [("promotion or divergence", self.stage.said[-1].text)]
                return [Finding(Kind.STUCK, *stuck[0]), *self._state()]
            pause(1.0)

    def _of_clients_and_hooks(self) -> Iterator[Finding]:
        journals, calls = self.operator.journals.values(), self.stage.hooks.calls()
        yield from check_hooks(journals, calls, self.undisturbed)
        for failed in self.applications.failed:
            yield Finding(Kind.FAILED, failed)

    def _state(self) -> Iterator[Finding]:
        shown = self.stage.run("status", program="mirror.cli")
        yield Finding(Kind.STUCK, "mirror status", shown.text)

    def _missing(self) -> list[tuple[str, str]]:
        """Return what is not on the other site, or was not read."""
        active, idle = self.operator.active, self.operator.idle
        copies = {name: read_site(site.bootstrap) for name, site in self.stage.sites.items()}
        logs, saved = {name: copy.log for name, copy in copies.items()}, copies[active].saved
        there = {where: {*log.values()} for where, log in logs[idle].items()}
        seen = {(read.group, read.partition, read.value) for read in list(self.applications.reads)}
        for where, log in logs[active].items():
            for offset, value in log.items():
                if where.topic in self.deleted or (active, where, offset) in saved:
                    continue
                if value not in there.get(where, ()):
                    return [(f"{value} in {where}", f"is on {active}, not on {idle}")]
                for group in self._groups():
                    if where.topic == TOPIC and (group, where, value) not in seen:
                        return [(f"{value} in {where}", f"on {active}, not read by {group}")]
        return []

    def _delete_what_was_deleted(self) -> bool:
        """Delete copies of what was deleted on one site, as the mirror advises if that was meant.

        Tell whether there was none.
        """
        is_gone = True
        for name in self.stage.sites:
            admin = AdminClient({**self.stage.clients[name], "log_level": 0})
            held = admin.list_topics(timeout=20).topics
            for topic in self.deleted & {*held}:
                is_gone = False
                try:
                    admin.delete_topics([topic])[topic].result(20)
                except KafkaException as error:
                    self.stage.note(wall_ms(), ("delete", topic), code_of(error) or 0, str(error))
        return is_gone

    def _story(self, once_from_ms: int | None) -> Story:
        self.stage.run("divergence")
        shown = self.stage.run("status", "--json", program="mirror.cli")
        found = re.search(r"^\{.*", shown.text, re.MULTILINE | re.DOTALL)
        lags = lags_of(json.loads(found[0])) if found and shown.status == 0 else []
        active, sites = self.operator.active, self.stage.sites
        copies = {name: read_site(site.bootstrap) for name, site in sites.items()}
        return Story(
            active=active,
            acked=list(self.applications.acked),
            reads=list(self.applications.reads),
            said=list(self.stage.said),
            switches=list(self.operator.switches.values()),
            openings=list(self.operator.openings.values()),
            logs={name: copy.log for name, copy in copies.items()},
            positions={
                group: read_positions(sites[active].bootstrap, group) for group in self._groups()
            },
            saved={name: copy.saved for name, copy in copies.items()},
            ends={name: copy.ends for name, copy in copies.items()},
            windows=list(self.windows),
            lags=[lag for lag in lags if lag.source == active],
            deleted=frozenset(self.deleted),
            once_from_ms=once_from_ms,
            forwarded=list(self.applications.forwarded),
        )

    def _groups(self) -> Sequence[str]:
        has_endpoints = self.stage.behind_endpoints is not None
        return (GROUP, PLAIN_GROUP, *([FORWARDED_GROUP] if has_endpoints else []))
