"""One set of topics in a drill: its applications, its operator, and what is held against both."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from failover.client.faults import code_of
from runtime.process.clock import wall_ms
from tests.drill.cluster import DrillFailed
from tests.drill.failover.applications import Applications
from tests.drill.failover.checker import Finding, Kind
from tests.drill.failover.console import Console
from tests.drill.failover.hook_checker import check_hooks
from tests.drill.failover.logs import lags_of, read_positions, read_site
from tests.drill.failover.operator import Operator
from tests.drill.failover.planning import DISASTERS, LOST, TAKEN_BACK, Round, What
from tests.drill.failover.stage import Stage
from tests.drill.failover.story import Said, Story, Window
from tests.drill.failover.subject import Subject

PARTITIONS: Final = 2
FIRST_S: Final = 60.0
CLOSED_S: Final = 25.0
"""So soon an idle site is closed that is back in reach, or was opened by hand."""


@dataclass(slots=True, kw_only=True)
class Actor:
    """What lasts over rounds of one set."""

    console: Console
    applications: Applications
    operator: Operator
    windows: list[Window] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)
    undisturbed: set[int] = field(default_factory=set)
    """When promotions were begun whose controllers nobody disturbed."""
    opened: list[tuple[str, int, str]] = field(default_factory=list)
    """Sites that take writes of this set from some time of the round on, and why."""

    @classmethod
    def of(cls, stage: Stage, applications: Applications) -> "Actor":
        """Return who moves the topics of these applications."""
        console = Console(stage=stage, subject=applications.subject)
        operator = Operator(console=console, applications=applications)
        return cls(console=console, applications=applications, operator=operator)

    @property
    def stage(self) -> Stage:
        """Return what all sets share."""
        return self.console.stage

    @property
    def subject(self) -> Subject:
        """Return the names of what moves."""
        return self.console.subject

    # --- a round's parts ---

    def command(self, at: Round, new: str) -> list[str]:
        """Return the command that the round gives."""
        lost = ["--source-lost", "--accept-loss", "--force"] if at.what in LOST else []
        return ["promote", new, *lost]

    def give_up(self, at: Round, old: str) -> None:
        """Note that the old site may take writes when it is back, where it is lost."""
        if at.what in LOST:
            self.opened.append((old, wall_ms(), at.what.value))

    def stop_plain(self, at: Round) -> None:
        """Have the plain consumer leave, at once or while the promotion waits for it."""
        if at.what in LOST or not at.plain_stays_s:
            self.applications.start_plain(None)
        else:
            self.applications.stop_plain_after(at.plain_stays_s)

    def end_promotion(self, at: Round, command: Sequence[str], new: str) -> list[Finding]:
        """Have the promotion come to its end, or be taken back."""
        if at.what in TAKEN_BACK:
            ended = self.operator.take_back(new)
        elif at.what is What.LEFT:
            ended = self.operator.wait_ended()
        else:
            ended = self.operator.promote(command, new)
        return [] if ended is None else [_stuck(ended)]

    def close_windows(self, opened_by_hand: Sequence[tuple[str, int, str]]) -> None:
        """Have idle sites take no more writes from some time on."""
        until_ms = wall_ms() + int(1000 * CLOSED_S)
        for site, from_ms, why in (*opened_by_hand, *self.opened):
            self.windows.append(Window(site=site, from_ms=from_ms, until_ms=until_ms, why=why))
        self.opened.clear()

    def note_undisturbed(self, from_ms: int) -> None:
        """Keep that nobody has disturbed the controllers of promotions since then."""
        begun = (started_ms for started_ms, _ in self.operator.journals)
        self.undisturbed.update(one for one in begun if one >= from_ms)

    # --- what is there when nobody writes ---

    def unsettled(self) -> list[tuple[str, str]]:
        """Decide what is left to decide; return what is not at rest, and how."""
        is_open = self.operator.look()
        is_decided = self.operator.decide()
        is_gone = self._delete_what_was_deleted()
        missing = self._missing()
        if missing or (is_decided and is_gone and not is_open):
            return missing
        return [("promotion or divergence", self.console.said[-1].text)]

    def _missing(self) -> list[tuple[str, str]]:
        """Return what is not on the other site, or was not read."""
        active, idle = self.operator.active, self.operator.idle
        sites = self.stage.sites.items()
        copies = {name: read_site(site.bootstrap, self.subject) for name, site in sites}
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
                    is_read = where.topic != self.subject.topic or (group, where, value) in seen
                    if not is_read:
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
                    told = (wall_ms(), ("delete", topic), code_of(error) or 0, str(error))
                    self.console.note(*told)
        return is_gone

    def story(self, once_from_ms: int | None, left_alone: tuple[int, int] | None) -> Story:
        """Return what has happened to this set so far."""
        self.console.run("divergence")
        shown = self.console.run("status", "--json", program="mirror.cli")
        found = re.search(r"^\{.*", shown.text, re.MULTILINE | re.DOTALL)
        known = lags_of(json.loads(found[0]), self.subject) if found and shown.status == 0 else []
        active, sites = self.operator.active, self.stage.sites
        copies = {name: read_site(site.bootstrap, self.subject) for name, site in sites.items()}
        topic, bootstrap = self.subject.topic, sites[active].bootstrap
        return Story(
            active=active,
            acked=list(self.applications.acked),
            reads=list(self.applications.reads),
            said=list(self.console.said),
            switches=list(self.operator.switches.values()),
            openings=list(self.operator.openings.values()),
            logs={name: copy.log for name, copy in copies.items()},
            positions={group: read_positions(bootstrap, group, topic) for group in self._groups()},
            saved={name: copy.saved for name, copy in copies.items()},
            ends={name: copy.ends for name, copy in copies.items()},
            windows=list(self.windows),
            lags=[lag for lag in known if lag.source == active],
            deleted=frozenset(self.deleted),
            once_from_ms=once_from_ms,
            left_alone=left_alone,
            forwarded=list(self.applications.forwarded),
        )

    def of_clients_and_hooks(self) -> Iterator[Finding]:
        """Yield what hooks have not kept, and what clients behind endpoints were refused."""
        named = None if self.subject.topic_set == "default" else self.subject.topic_set
        calls = [one for one in self.stage.hooks.calls() if one.topic_set == named]
        yield from check_hooks(self.operator.journals.values(), calls, self.undisturbed)
        for failed in self.applications.failed:
            yield Finding(Kind.FAILED, failed)

    def named(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return findings that say whose they are."""
        name = self.subject.topic_set
        if name is None:
            return list(findings)
        return [replace(one, of=f"set {name}: {one.of}") for one in findings]

    def _groups(self) -> Sequence[str]:
        own, has_endpoints = self.subject, self.applications.endpoints is not None
        behind = [own.forwarded_group] if has_endpoints else []
        return (own.group, own.plain_group, *behind)


def can_give_up(at: Round, actor: Actor, lost: str) -> bool:
    """Tell whether a round beside another one has something to move where a site is lost."""
    return at.what not in DISASTERS or actor.operator.active == lost


def create_topics(stage: Stage, subject: Subject) -> None:
    """Make the topics of a subject on the first site; raises DrillFailed."""
    admin = AdminClient({**stage.clients["dc1"], "log_level": 0})
    compacted = NewTopic(subject.compacted, 1, 1, config={"cleanup.policy": "compact"})
    wanted = [NewTopic(subject.topic, PARTITIONS, 1), compacted]
    for topic, created in admin.create_topics(wanted).items():
        try:
            created.result(FIRST_S)
        except KafkaException as error:
            raise DrillFailed(f"topic {topic}: {error}") from error


def _stuck(ended: Said) -> Finding:
    return Finding(Kind.STUCK, " ".join(ended.command), ended.text)
