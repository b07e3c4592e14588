"""An operator who knows only the documentation, and brings every promotion to its end."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from failover.journal.journal import Journal
from failover.journal.steps import PromotionState, StepName
from runtime.process.clock import wall_ms
from tests.drill.failover.applications import Applications
from tests.drill.failover.console import Console
from tests.drill.failover.planning import End
from tests.drill.failover.stage import PATH
from tests.drill.failover.story import Said, Switch, advised
from tests.failover.promoting import WitnessView, open_witness
from tests.failover.two_sites import pause

ENDED_S: Final = 200.0
INSIST: Final = "so keys go to other partitions there; --force promotes"
FROM_EARLIEST_S: Final = 8.0
"""So long a copy that is to be mirrored anew is waited for; it may be refused."""


@dataclass(slots=True, kw_only=True)
class Operator:
    """Looks, repeats, aborts, recovers, and decides about what one site alone has."""

    console: Console
    applications: Applications
    switches: dict[int, Switch] = field(default_factory=dict)
    """By the time of the switch: a witness that is wiped forgets epochs."""
    openings: dict[int, Switch] = field(default_factory=dict)
    """The same of promotions that had opened their site and were taken back, or are under way."""
    journals: dict[tuple[int, int], Journal] = field(default_factory=dict)
    """By the time of the beginning and the epoch."""
    active: str = "dc1"
    end: End = End.QUARANTINE
    _anew: dict[str, float] = field(default_factory=dict)
    _round_from_ms: int = 0

    @property
    def idle(self) -> str:
        """Return the site that is not active."""
        return next(one for one in self.console.stage.sites if one != self.active)

    def look(self) -> bool:
        """Learn who is active; tell whether a promotion is under way or the witness is in doubt."""
        said = self.console.run("status", "--json")
        is_open = self.note_switches()
        if said.status == 2:
            return self._recover(said)
        shown = json.loads(said.text[said.text.index("{") :])
        name = self.console.subject.topic_set
        own = shown if name is None else shown["sets"][name]
        self.active = own["active"]["site"]
        return is_open

    def note_switches(self) -> bool:
        """Keep the switches that the witness knows of; tell whether a promotion is unfinished."""
        at = self.console.stage.at_witness
        name = self.console.subject.topic_set
        with open_witness(at.address, PATH, **at.client) as pair:
            own = pair.paths if name in {None, "default"} else pair.paths.of_set(str(name))
            witness = WitnessView(pair.client, own)
            if not witness.client.exists(witness.paths.journals):
                return False
            journals = witness.journals()
        for one in journals:
            self.journals[one.started_ms, one.epoch] = one
            opened = one.record(StepName.OPEN_TARGET)
            until_ms = one.switched_ms or (None if opened is None else opened.ended_ms)
            if until_ms is not None:
                known = self.openings if one.switched_ms is None else self.switches
                known[until_ms] = Switch(
                    started_ms=one.started_ms, switched_ms=until_ms, old=one.source, new=one.site
                )
        return any(one.state is PromotionState.RUNNING for one in journals)

    def _recover(self, refused: Said) -> bool:
        """Restore the witness as the runbook says; a person finds out which site takes writes."""
        self.console.run("recover")
        said = self.console.run("recover", "--write")
        if said.status != 0 and "--active" in said.text + refused.text:
            last = max(self.applications.acked, key=lambda ack: ack.at_ms)
            said = self.console.run("recover", "--active", last.site, "--write")
            if said.status == 0 and last.site != self.active:
                self._note_switch_by_hand(last.site, said)
        return True

    def _note_switch_by_hand(self, site: str, said: Said) -> None:
        """The promotion under way had opened its site when the witness forgot it."""
        self.switches[said.ended_ms] = Switch(
            started_ms=self._round_from_ms, switched_ms=said.ended_ms, old=self.active, new=site
        )

    def promote(self, command: Sequence[str], new: str) -> Said | None:
        """Give the same command again until the new site is active; return what said otherwise.

        A topic that was grown on an idle site has more partitions there: the operator insists.
        """
        deadline = monotonic() + ENDED_S
        said = self.console.said[-1]
        insisted: tuple[str, ...] = ()
        while self.look() or self.active != new:
            if monotonic() > deadline:
                return said
            said = self.console.run(*command, *insisted)
            insisted = ("--force",) if INSIST in said.text and "--force" not in command else ()
            if said.status != 0:
                self.decide()
            pause(1.0)
        return None

    def take_back(self, new: str) -> Said | None:
        """Abort until no promotion is under way; it may have switched before."""
        deadline, said = monotonic() + ENDED_S, None
        while self.look() or (said is None and self.active != new):
            if monotonic() > deadline:
                return said
            said = self.console.run("abort")
            pause(1.0)
        return None

    def wait_ended(self) -> Said | None:
        """Do nothing until somebody else has ended the promotion."""
        deadline = monotonic() + ENDED_S
        while self.look():
            if monotonic() > deadline:
                return self.console.said[-1]
            pause(1.0)
        return None

    def decide(self) -> bool:
        """Look at the divergence and decide about it; tell whether nothing is left to decide.

        What is merged stays listed until it has come to the other site.
        """
        said = self.console.run("divergence")
        wanted = advised(said)
        for flow, where in wanted:
            topic = where.partition(":")[0]
            is_anew = self.end is End.FROM_EARLIEST
            until = self._anew.setdefault(f"{flow} {topic}", monotonic() + FROM_EARLIEST_S)
            if is_anew and monotonic() < until:
                if until - monotonic() > FROM_EARLIEST_S - 0.5:
                    self._order(flow, topic, End.FROM_EARLIEST)
            else:
                self._order(flow, where, End.QUARANTINE if is_anew else self.end)
        return not wanted and said.status in {0, 1} and "NOT looked at" not in said.text

    def is_merging(self) -> bool:
        """Tell whether something waits for a failback to be appended to the other site."""
        looks = [said for said in self.console.said if said.command[0] == "divergence"]
        return bool(looks) and "they are merged" in looks[-1].text

    def _order(self, flow: str, where: str, end: End) -> None:
        self.console.run("restart", flow, where, end.value, program="mirror.cli")

    def begin_round(self, end: End) -> None:
        """Decide like this from now on."""
        self.end = end
        self._round_from_ms = wall_ms()
        self._anew.clear()
