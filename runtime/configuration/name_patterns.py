"""Patterns of names that say whole names or the beginnings of names, and nothing else. Pure.

Of two such patterns it can be told whether some name matches both, and whether one takes all that
the other takes. Of regular expressions in general nobody can tell. A dot in them is a dot.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_NAME: Final = re.compile(r"(?:[A-Za-z0-9_.-]|\\[.-])+")
_PREFIX: Final = re.compile(r"((?:[A-Za-z0-9_.-]|\\[.-])*?)\.\*")


class NamePattern(NamedTuple):
    """One name, or all names that begin with `text`; every name where that is empty."""

    text: str
    is_prefix: bool = False

    def __str__(self) -> str:
        """Return it as people write it."""
        return f"{self.text}.*" if self.is_prefix else self.text

    def takes(self, name: str) -> bool:
        """Tell whether a name matches."""
        return name.startswith(self.text) if self.is_prefix else name == self.text

    def takes_all_of(self, other: "NamePattern") -> bool:
        """Tell whether every name that matches the other pattern matches this one."""
        return self.takes(other.text) and (self.is_prefix or not other.is_prefix)

    def overlaps(self, other: "NamePattern") -> bool:
        """Tell whether some name matches both; then one of the two takes all of the other."""
        return self.takes_all_of(other) or other.takes_all_of(self)

    def compiled(self) -> re.Pattern[str]:
        """Return the regular expression that takes the same names."""
        return re.compile(re.escape(self.text) + (".*" if self.is_prefix else ""), re.DOTALL)


def read_name_pattern(text: str) -> NamePattern | None:
    """Return what `orders`, `orders.*` or `.*` says; None for any other regular expression."""
    if found := _PREFIX.fullmatch(text):
        return NamePattern(found[1].replace("\\", ""), is_prefix=True)
    return NamePattern(text.replace("\\", "")) if _NAME.fullmatch(text) else None


def alternatives(pattern: str) -> Iterator[tuple[str, NamePattern | None]]:
    """Yield the parts of `a|b` with what they say; a pattern with brackets stays whole."""
    parts = [pattern] if re.search(r"[()\[\]{}]", pattern) else pattern.split("|")
    for text in parts:
        yield text, read_name_pattern(text)
