"""What one client process of a drill is to do, and where it writes down what it is told."""

import select
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TextIO

from tests.drill.history import Event, line_of

COMMON: Final = {
    "log_level": 0,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "socket.timeout.ms": 6_000,
    "socket.connection.setup.timeout.ms": 4_000,
    "topic.metadata.refresh.interval.ms": 2_000,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 500,
}


@dataclass(slots=True, kw_only=True)
class Task:
    """What this process is to do, and where it writes."""

    name: str
    client: Mapping[str, Any]
    """The settings with which the cluster is reached."""
    topic: str
    partitions: int
    history: TextIO
    rate: int = 500

    def note(self, event: Event) -> None:
        self.history.write(line_of(event))

    def is_over(self, patience_s: float = 0.0) -> bool:
        """Return whether standard input has ended; waits so long for that."""
        self.history.flush()
        readable, _, _ = select.select([sys.stdin], [], [], patience_s)
        return bool(readable)

    def log(self, partition: int | None) -> str:
        return f"{self.topic}-{partition}"

    def settings(self, **more: Any) -> dict[str, Any]:
        return {**COMMON, **self.client, "client.id": self.name, **more}
