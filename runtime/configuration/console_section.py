"""The console in the configuration: the section `console`."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from runtime.configuration.reading.section import Section
from wire.values import frozen

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "console.peek": "Regular expressions for whole names of topics, of which the console of "
        "`failover serve` shows records to whoever may read its pages: see [The "
        "console](../operate/console.md). Without it no record is shown. Pages have to be guarded "
        "for it (`metrics.token_file`, `metrics.username` or `metrics.tls.client_ca`).",
    }
)
"""What each key is for."""


@frozen
class PeekedTopics:
    """The topics of which records are shown; none by default."""

    patterns: tuple[re.Pattern[str], ...] = ()

    @property
    def is_any(self) -> bool:
        """Return whether there may be any."""
        return bool(self.patterns)

    def matches(self, topic: str) -> bool:
        """Tell whether records of a topic are shown."""
        return any(one.fullmatch(topic) for one in self.patterns)


@frozen
class ConsoleConfig:
    """What the console shows beyond what it always shows."""

    peek: PeekedTopics = PeekedTopics()


def read_console(section: Section, *, is_guarded: bool) -> ConsoleConfig:
    """Take the whole section; raises ConfigurationError.

    `is_guarded`: a stranger who reaches the pages reads nothing of them.
    """
    patterns: list[re.Pattern[str]] = []
    for text in section.strings("peek", ()):
        try:
            patterns.append(re.compile(text, re.DOTALL))
        except (re.error, OverflowError, RecursionError) as problem:
            section.complain("peek", f"{text!r}: {problem}")
    if patterns and not is_guarded:
        section.complain(
            "peek",
            "shows records to everybody who reaches the pages: name what readers have to show"
            " (metrics.token_file, metrics.username and metrics.password_file, or"
            " metrics.tls.client_ca)",
        )
    section.finish()
    return ConsoleConfig(peek=PeekedTopics(patterns=tuple(patterns)))
