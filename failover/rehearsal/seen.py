"""What a rehearsal's load has seen, noted by the threads that write and read. Pure.

Each list has one thread that appends to it. What is read of it meanwhile is a beginning of it.
"""

import json
from dataclasses import dataclass, field
from typing import NamedTuple

from runtime.untrusted_json import read_json, text, whole_number


class Sighting(NamedTuple):
    """One record that a site has acknowledged or handed out; `at_ms` is of one monotonic clock."""

    at_ms: int
    site: str
    number: int


@dataclass(slots=True)
class LoadSeen:
    """All of one rehearsal."""

    run: str
    """Tells this rehearsal's records from those of earlier ones."""
    sent: int = 0
    acknowledged: list[Sighting] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Why a site would not take a record for good."""
    delivered: list[Sighting] = field(default_factory=list)

    def next_value(self) -> tuple[int, bytes]:
        """Return the number and the value of the record that is sent next."""
        number = self.sent
        self.sent += 1
        return number, json.dumps({"run": self.run, "number": number}).encode()

    def number_of(self, value: bytes | None) -> int | None:
        """Return a record's number, None for a record of another rehearsal."""
        try:
            found = read_json(value or b"")
            return whole_number(found["number"]) if text(found["run"]) == self.run else None
        except (ValueError, KeyError, TypeError):
            return None

    @property
    def unsettled(self) -> int:
        """How many records no site has acknowledged or refused."""
        return self.sent - len(self.acknowledged) - len(self.refused)

    def sites_seen(self) -> tuple[str | None, str | None]:
        """Return where the last record was acknowledged, and where from the last was delivered."""
        last = (seen[-1].site if seen else None for seen in (self.acknowledged, self.delivered))
        written, read = last
        return written, read
