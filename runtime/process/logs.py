"""One log format for every program: one line an event, on standard error, as text or as JSON."""

import logging
import sys
import traceback
from collections.abc import Mapping
from dataclasses import field, replace
from enum import Enum
from types import NoneType
from typing import Final

from runtime.process.output import escaped
from wire.values import frozen

KAZOO: Final = "kazoo"


class LogFormat(Enum):
    """The forms of a line."""

    TEXT = "text"
    JSON = "json"


@frozen
class LogSettings:
    """The form of lines, the least level that is logged, and that of single loggers."""

    format: LogFormat = LogFormat.TEXT
    level: str = "info"
    levels: Mapping[str, str] = field(default_factory=dict)


@frozen
class LogFlags:
    """What was typed about the log; None is nothing."""

    format: LogFormat | None = None
    level: str | None = None

    def over(self, settings: LogSettings) -> LogSettings:
        """Return settings with what was typed instead."""
        return replace(
            settings, format=self.format or settings.format, level=self.level or settings.level
        )

    def words(self) -> list[str]:
        """Return the same for the command line of a child."""
        form = [] if self.format is None else ["--log-format", self.format.value]
        return form if self.level is None else [*form, "--log-level", self.level]


class _LineFormatter(logging.Formatter):
    """Keeps a message in one line; a traceback behind it has the lines that it needs."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return escaped(super().formatMessage(record))


def configure(
    program: str,
    settings: LogSettings = LogSettings(),  # noqa: B008 - it is frozen
) -> None:
    """Log to standard error as `time program level module: message`, or as JSON with these.

    kazoo warns of every attempt to connect, several a second while no server answers;
    `runtime.coordination.zookeeper` says the same once, so only kazoo's errors are kept.
    """
    level = settings.level.upper()
    logging.basicConfig(stream=sys.stderr, level=level, force=True)
    logging.getLogger().handlers[0].setFormatter(_formatter(program, settings.format))
    quiet = {KAZOO: "warning" if settings.level == "debug" else "error"}
    for name, of_logger in {**quiet, **settings.levels}.items():
        logging.getLogger(name).setLevel(of_logger.upper())


def _formatter(program: str, form: LogFormat) -> logging.Formatter:
    if form is LogFormat.TEXT:
        return _LineFormatter(f"%(asctime)s {program} %(levelname)s %(name)s: %(message)s")
    from runtime.process.json_log import JsonFormatter

    return JsonFormatter(program)


def tell_unforeseen(program: str, error: BaseException) -> None:
    """Show an error that is a mistake of ours with its traceback, in the form of the log."""
    handlers = logging.getLogger().handlers
    if not handlers or isinstance(handlers[0].formatter, _LineFormatter | NoneType):
        traceback.print_exception(error)
    else:
        logging.getLogger(program).error("ended by an unforeseen error", exc_info=error)
