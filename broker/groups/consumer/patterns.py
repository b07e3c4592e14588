"""The regular expressions that members subscribe with, and the topics that they match.

A stranger's pattern must not hang a broker. RE2 matches in a time that grows with the text alone,
and its programs are kept small. A pattern is held against all topics once for each change of
them, with pauses, and whoever needs it meanwhile waits for the same result. Patterns take turns:
however many there are, the rest of the broker waits for one of them at a time.

RE2 is also what Apache Kafka's brokers hold such patterns against, so the same ones are valid.
"""

from collections import OrderedDict
from typing import Final

import re2
import trio

from broker.groups.write_operation import Topics

MOST_CHARACTERS: Final = 2_000
MOST_PROGRAM_BYTES: Final = 64 * 1024
"""Enough for a list of names as long as `MOST_CHARACTERS`."""
MOST_REMEMBERED: Final = 200
"""Each may match all topics of a large cluster."""
AT_ONCE: Final = 10
"""The worst pattern of that size takes 1.3 ms for the longest name."""


class BadPattern(ValueError):
    """Says what is wrong with a pattern."""


def compiled(pattern: str) -> "re2._Regexp[str]":
    """Return a pattern that is ready to match; raises BadPattern."""
    if len(pattern) > MOST_CHARACTERS:
        raise BadPattern(f"it has {len(pattern)} characters, more than {MOST_CHARACTERS}")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MOST_PROGRAM_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as reason:
        said = reason.args[0]
        words = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise BadPattern(words) from None


class _Known:
    """What one pattern matched at a change of the topics; one task at a time finds it out."""

    __slots__ = ("changes", "lock", "topics")

    def __init__(self) -> None:
        self.changes = -1
        self.topics: tuple[str, ...] | None = None
        self.lock = trio.Lock()


class PatternMatches:
    """Finds out, and remembers, which topics patterns match."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._turn = trio.Lock()
        """Its holder matches `AT_ONCE` names; those who wait get it in order, each in a later step
        of the event loop."""

    def __len__(self) -> int:
        """Return how many patterns are remembered."""
        return len(self._known)

    async def of(self, pattern: str) -> tuple[str, ...] | None:
        """Return the names of the topics that a pattern matches, in order.

        None is for a pattern that cannot be used here: another broker may have taken it.
        """
        known = self._known.setdefault(pattern, _Known())
        self._known.move_to_end(pattern)
        while len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        if known.changes != self._topics.changes:
            async with known.lock:
                await self._find_out(pattern, known)
        return known.topics

    async def _find_out(self, pattern: str, known: _Known) -> None:
        if known.changes == self._topics.changes:
            return
        changes = self._topics.changes
        try:
            regexp = compiled(pattern)
        except BadPattern:
            known.changes, known.topics = changes, None
            return
        names, matched = sorted(self._topics.topics()), list[str]()
        for first in range(0, len(names), AT_ONCE):
            async with self._turn:
                some = names[first : first + AT_ONCE]
                matched += (name for name in some if regexp.fullmatch(name) is not None)
        known.changes, known.topics = changes, tuple(matched)
