"""Commands about one set of topics, as an operator types them, and what they said."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.drill.failover.stage import Controller, Stage
from tests.drill.failover.story import Said
from tests.drill.failover.subject import WHOLE, Subject

TAKING_A_SET: Final = frozenset({"promote", "abort", "divergence", "recover", "restart"})


@dataclass(slots=True, kw_only=True)
class Console:
    """One operator's; `said` is what was said about this set alone."""

    stage: Stage
    subject: Subject = WHOLE
    said: list[Said] = field(default_factory=list)

    def run(self, *command: str, program: str = "failover.cli", file: Path | None = None) -> Said:
        """Run a command to its end and keep what it said."""
        return self._keep(self.stage.run(*self._typed(command), program=program, file=file))

    def note(self, began_ms: int, command: Sequence[str], status: int, text: str) -> Said:
        """Keep what a command said that somebody else has run."""
        return self._keep(self.stage.note(began_ms, command, status, text))

    def controller(self, *command: str) -> Controller:
        """Start a command that stands still behind each step."""
        return self.stage.controller(*self._typed(command))

    def _typed(self, command: Sequence[str]) -> tuple[str, ...]:
        name = self.subject.topic_set
        takes_set = name is not None and command[0] in TAKING_A_SET
        return (*command, "--set", str(name)) if takes_set else tuple(command)

    def _keep(self, said: Said) -> Said:
        self.said.append(said)
        return said
