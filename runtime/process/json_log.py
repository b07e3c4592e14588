"""Events of a log as JSON, imported only where somebody wants it: it takes time."""

import json
import logging
from datetime import UTC, datetime

from runtime.process.output import escaped


class JsonFormatter(logging.Formatter):
    """Makes an event one JSON object in one line, its traceback a field of it.

    What a name from outside may hold is escaped as in text: it stays so when JSON is decoded.
    """

    def __init__(self, program: str) -> None:
        super().__init__()
        self._program = program

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of an event."""
        event = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "program": self._program,
            "logger": record.name,
            "message": escaped(record.getMessage()),
        }
        if record.exc_info:
            lines = self.formatException(record.exc_info).splitlines()
            event["traceback"] = "\n".join(map(escaped, lines))
        return json.dumps(event)
