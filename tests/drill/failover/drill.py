"""Rounds of promotions under load, each with a fault, each judged when everything is quiet."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from failover.client.faults import code_of
from failover.steps import PromotionState
from runtime.clock import wall_ms
from tests.drill.cluster import DrillFailed
from tests.drill.failover.applications import TOPIC, Applications, run_applications
from tests.drill.failover.checker import Finding, Kind, check
from tests.drill.failover.faulting import Faulting
from tests.drill.failover.logs import lags_of, read_logs, read_positions
from tests.drill.failover.planning import HARMLESS, Fault, Round, What, plan_round
from tests.drill.failover.stage import PATH, Stage, advised
from tests.drill.failover.story import Logs, Said, Story, Switch, parts_given_up
from tests.failover.promoting import open_witness
from tests.failover.sites import pause

PARTITIONS: Final = 2
ENDED_S: Final = 150.0
LEVEL_S: Final = 90.0
FIRST_S: Final = 60.0
BETWEEN_S: Final = 2.0


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
        _create_topic(stage)
        with run_applications(stage.applications, stage.clients) as applications:
            them = _Drill(stage=stage, applications=applications)
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


def _create_topic(stage: Stage) -> None:
    admin = AdminClient({**stage.clients["dc1"], "log_level": 0})
    created = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
    try:
        created[TOPIC].result(FIRST_S)
    except KafkaException as error:
        raise DrillFailed(f"topic {TOPIC}: {error}") from error


@dataclass(slots=True, kw_only=True)
class _Drill:
    """What lasts over rounds."""

    stage: Stage
    applications: Applications
    switches: dict[int, Switch] = field(default_factory=dict)
    """By the time of the switch: a witness that is wiped forgets epochs."""
    made: list[str] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)
    active: str = "dc1"

    def wait_begun(self) -> None:
        """Wait until records are mirrored, and the standby is closed. Raises DrillFailed."""
        deadline = monotonic() + FIRST_S
        while monotonic() < deadline:
            self.applications.raise_faults()
            said = self.stage.run("status")
            if "dc2: standby, fenced" in said.text and len(self.applications.reads) > 5:
                self.applications.try_both_sites()
                return
            pause(1.0)
        raise DrillFailed(f"nothing was mirrored in {FIRST_S:g} s:\n{said.text}")

    def run(self, at: Round) -> Judged:
        """Carry out a round and judge it."""
        began_s, from_ms = monotonic(), wall_ms()
        if at.fault is Fault.OLD_WITNESS:
            self.stage.copy_witness()
            pause(BETWEEN_S)
        old, new = self.active, self._other(self.active)
        command = ["promote", new]
        if at.what is What.DISASTER:
            command += ["--source-lost", "--accept-loss", "--force"]
            self.stage.sites[old].kill()
        faulting = Faulting(
            stage=self.stage,
            applications=self.applications,
            round=at,
            old=old,
            new=new,
            note_switches=self._note_switches,
            made=self.made,
            deleted=self.deleted,
        )
        faulting.promote(command)
        lost = [old] if at.what is What.DISASTER else []
        self.stage.bring_back(*lost)
        findings = self._finish(at, command, new)
        self.stage.bring_back()
        findings += self._settle()
        excused = at.fault not in HARMLESS or at.what is not What.PROMOTION
        story = self._story(None if excused else from_ms)
        findings += check(story)
        self.applications.go_on()
        pause(BETWEEN_S)
        return Judged(
            round=at,
            was_hit=faulting.is_done,
            seconds=monotonic() - began_s,
            findings=findings,
            acked=len(self.applications.acked),
        )

    def _other(self, site: str) -> str:
        return next(one for one in self.stage.sites if one != site)

    def _look(self) -> bool:
        """Learn who is active; tell whether a promotion is under way or the witness is in doubt."""
        said = self.stage.run("status", "--json")
        is_open = self._note_switches()
        if said.status == 2:
            return self._recover(said)
        self.active = json.loads(said.text[said.text.index("{") :])["active"]["site"]
        return is_open

    def _note_switches(self) -> bool:
        """Keep the switches that the witness knows of; tell whether a promotion is unfinished."""
        with open_witness(self.stage.witness_address, PATH) as witness:
            if not witness.client.exists(witness.paths.journals):
                return False
            journals = witness.journals()
        for one in journals:
            if one.switched_ms is not None:
                self.switches[one.switched_ms] = Switch(
                    started_ms=one.started_ms,
                    switched_ms=one.switched_ms,
                    old=one.source,
                    new=one.site,
                )
        return any(one.state is PromotionState.RUNNING for one in journals)

    def _recover(self, refused: Said) -> bool:
        """Restore the witness as the runbook says; a person finds out which site takes writes."""
        self.stage.run("recover")
        said = self.stage.run("recover", "--write")
        if said.status != 0 and "--active" in said.text + refused.text:
            last = max(self.applications.acked, key=lambda ack: ack.at_ms)
            self.stage.run("recover", "--active", last.site, "--write")
        return True

    def _finish(self, at: Round, command: Sequence[str], new: str) -> list[Finding]:
        """Have the promotion come to its end: the same command again, or `abort`."""
        deadline = monotonic() + ENDED_S
        is_aborted, said = False, self.stage.said[-1]
        while True:
            is_open = self._look()
            if at.what is What.ABORT and not is_open and (is_aborted or self.active == new):
                return []
            if at.what is not What.ABORT and not is_open and self.active == new:
                return []
            if monotonic() > deadline:
                return [Finding(Kind.STUCK, " ".join(said.command), said.text)]
            if at.what is What.ABORT:
                said = self.stage.run("abort")
                is_aborted = True
            else:
                said = self.stage.run(*command)
                self._follow_advice(said)
            pause(1.0)

    def _follow_advice(self, said: Said) -> None:
        for command in advised(said):
            self.stage.run(*command, program="mirror.cli")

    def _settle(self) -> list[Finding]:
        """Wait until nobody writes, all is mirrored, and the group has read it."""
        deadline = monotonic() + LEVEL_S
        if not self.applications.rest():
            return [Finding(Kind.STUCK, "records that no site has acknowledged for a minute")]
        while monotonic() < deadline:
            self._look()
            missing = self._missing()
            if not missing:
                return []
            self._follow_advice(self.stage.run("divergence"))
            self._delete_what_was_deleted()
            pause(2.0)
        return [Finding(Kind.STUCK, *missing[0]), *self._state()]

    def _state(self) -> Iterator[Finding]:
        shown = self.stage.run("status", program="mirror.cli")
        yield Finding(Kind.STUCK, "mirror status", shown.text)

    def _missing(self) -> list[tuple[str, str]]:
        """Return what is not on the other site, or was not read."""
        logs = self._logs()
        other = self._other(self.active)
        there = {where: {*log.values()} for where, log in logs[other].items()}
        parts = [part for said in self.stage.said for part in parts_given_up(said)]
        for where, log in logs[self.active].items():
            for offset, value in log.items():
                is_aside = any(part.has(self.active, where, offset) for part in parts)
                is_wanted = where.topic not in self.deleted and not is_aside
                if is_wanted and value not in there.get(where, ()):
                    return [(f"{value} in {where}", f"is on {self.active}, not on {other}")]
        seen = {(read.partition, read.value) for read in list(self.applications.reads)}
        for where, log in logs[self.active].items():
            for value in log.values():
                if where.topic == TOPIC and (where, value) not in seen:
                    return [(f"{value} in {where}", f"on {self.active}, not read by the group")]
        return []

    def _delete_what_was_deleted(self) -> None:
        """The mirror advises to delete the target's copy where the deletion was meant."""
        for name in self.stage.sites:
            admin = AdminClient({**self.stage.clients[name], "log_level": 0})
            held = admin.list_topics(timeout=20).topics
            for topic in self.deleted & {*held}:
                try:
                    admin.delete_topics([topic])[topic].result(20)
                except KafkaException as error:
                    self.stage.note(wall_ms(), ("delete", topic), code_of(error) or 0, str(error))

    def _logs(self) -> Logs:
        return {name: read_logs(site.bootstrap) for name, site in self.stage.sites.items()}

    def _story(self, once_from_ms: int | None) -> Story:
        self.stage.run("divergence")
        shown = self.stage.run("status", "--json", program="mirror.cli")
        found = re.search(r"^\{.*", shown.text, re.MULTILINE | re.DOTALL)
        lags = lags_of(json.loads(found[0])) if found and shown.status == 0 else []
        return Story(
            active=self.active,
            acked=list(self.applications.acked),
            reads=list(self.applications.reads),
            said=list(self.stage.said),
            switches=list(self.switches.values()),
            logs=self._logs(),
            positions=read_positions(self.stage.sites[self.active].bootstrap),
            lags=[lag for lag in lags if lag.source == self.active],
            deleted=frozenset(self.deleted),
            once_from_ms=once_from_ms,
        )
