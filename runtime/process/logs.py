"""One log format for every program: one line an event, on standard error."""

import logging
import sys

from runtime.process.output import escaped


class _LineFormatter(logging.Formatter):
    """Keeps a message in one line; a traceback behind it has the lines that it needs."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return escaped(super().formatMessage(record))


def configure(program: str, *, verbose: bool = False) -> None:
    """Log to standard error as `time program level module: message`.

    kazoo warns of every attempt to connect, several a second while no server answers;
    `runtime.coordination.zookeeper` says the same once, so only kazoo's errors are kept.
    """
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if verbose else logging.INFO,
        force=True,
    )
    logging.getLogger().handlers[0].setFormatter(
        _LineFormatter(f"%(asctime)s {program} %(levelname)s %(name)s: %(message)s")
    )
    logging.getLogger("kazoo").setLevel(logging.WARNING if verbose else logging.ERROR)
