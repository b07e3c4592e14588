"""The regular expressions that members subscribe with, and the topics that they match.

A stranger's pattern must not hang a broker. RE2 matches in a time that grows with the text alone,
and its programs are kept small. A pattern is held against all topics once for each change of
them, with pauses, and whoever needs it meanwhile waits for the same result. Patterns take turns:
however many there are, the rest of the broker waits for one of them at a time.

RE2 is also what Apache Kafka's brokers hold such patterns against, so the same ones are valid.
"""

from collections import OrderedDict, deque
from time import perf_counter
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
TURN_S: Final = 0.001
"""A turn is over after so many names or so much time: the worst pattern of that size takes 12 ms
for the longest name, a usual one 5 µs."""


class BadPattern(ValueError):
    """Says what is wrong with a pattern."""


def compiled(pattern: str) -> "re2._Regexp[str]":
    """Return a pattern that is ready to match; raises BadPattern."""
    if len(pattern) > MOST_CHARACTERS:
        raise BadPattern(f"it has {len(pattern)} characters, more than {MOST_CHARACTERS}")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MOST_PROGRAM_BYTES
    # Nobody asks what a group matched; to keep that for a thousand groups takes 0.2 s a name.
    options.never_capture = True
    try:
        return re2.compile(pattern, options)
    except re2.error as reason:
        said = reason.args[0]
        words = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise BadPattern(words) from None


def _matched_now(regexp: "re2._Regexp[str]", left: deque[str]) -> list[str]:
    """Take names away for one turn; return those that match."""
    ends_s = perf_counter() + TURN_S
    matched: list[str] = []
    for _ in range(min(AT_ONCE, len(left))):
        name = left.popleft()
        if regexp.fullmatch(name) is not None:
            matched.append(name)
        if perf_counter() >= ends_s:
            break
    return matched


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
        """Its holder matches `AT_ONCE` names at most; those who wait get it in order, each in a
        later step of the event loop."""

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
        left, matched = deque(sorted(self._topics.topics())), list[str]()
        while left:
            async with self._turn:
                matched += _matched_now(regexp, left)
        known.changes, known.topics = changes, tuple(matched)
