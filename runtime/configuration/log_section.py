"""The log of all programs in the configuration: the section `log`."""

import re
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from runtime.configuration.reading.section import Section
from runtime.process.log_words import FORMS, LEVELS
from runtime.process.logs import LogFormat, LogSettings

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "log.format": "The lines of all programs' logs on standard error: `text`, or `json`, an "
        "object a line with time, level, program, logger, message, and traceback where there is "
        "one. `--log-format` of a program goes before.",
        "log.level": "The least level that is logged. `--log-level` and `--verbose` go before.",
        "log.levels.<logger>": "The same for one logger and those below it, as `mirror.forward`; "
        "each line of the log names its logger.",
    }
)
"""What each key is for."""

_LOGGER: Final = re.compile(r"[A-Za-z_][\w.]*")


def read_log(section: Section) -> LogSettings:
    """Return how programs log; raises ConfigurationError."""
    form = LogFormat(section.choice("format", FORMS, LogFormat.TEXT.value))
    level = section.choice("level", LEVELS, "info")
    of_loggers = section.section("levels", required=False)
    levels: dict[str, str] = {}
    for logger in of_loggers.values:
        if not _LOGGER.fullmatch(logger):
            of_loggers.complain(logger, "is no name of a logger, as mirror.forward")
        found = of_loggers.attempt(partial(of_loggers.choice, logger, LEVELS))
        levels |= {} if found is None else {logger: found}
    section.finish()
    return LogSettings(format=form, level=level, levels=MappingProxyType(levels))
