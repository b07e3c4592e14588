"""What is wrong with a file: all of it is told at once, in the order of its lines."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # programs that read no file know this module too
    import yaml

MOST_SHOWN: Final = 50
"""So many mistakes of one file are told: one that is something else has a mistake in each line."""


class ConfigurationError(ValueError):
    """A line for each mistake: `file:line: key: what is wrong`."""

    line = 0
    """Of the file, counted from 1; 0 where the mistake is of none."""
    key = ""
    """Its whole name; "" where the mistake is of none."""
    parts: tuple["ConfigurationError", ...] = ()
    """All mistakes of a file, by their lines, where this stands for several."""

    def each(self) -> tuple["ConfigurationError", ...]:
        """Return the mistakes one by one."""
        return self.parts or (self,)


def mistake(file: str, node: "yaml.Node", key: str, problem: str) -> ConfigurationError:
    """Return one mistake, at the line where its node begins."""
    line = node.start_mark.line + 1 if node.start_mark else 0
    shown = key if key.isprintable() else repr(key)[1:-1]
    error = ConfigurationError(f"{file}:{line}: {shown}: {problem}")
    error.line, error.key = line, key
    return error


class Mistakes:
    """All that is wrong with one file, one mistake for each key: what follows from it is none."""

    def __init__(self, file: str) -> None:
        """Begin with nothing wrong in a file of this name."""
        self._file = file
        self._found: dict[str, ConfigurationError] = {}

    def add(self, wrong: ConfigurationError) -> None:
        """Remember it, unless something is known to be wrong with the same key."""
        self._found.setdefault(wrong.key, wrong)

    def of(self, keys: Iterable[str]) -> ConfigurationError | None:
        """Return what is wrong with the first of these keys that has a mistake."""
        return next((self._found[key] for key in keys if key in self._found), None)

    def within(self, path: str) -> ConfigurationError | None:
        """Return the first mistake found in a section; "" is the whole file."""
        for key, wrong in self._found.items():
            if not path or key == path or key.startswith((f"{path}.", f"{path}[")):
                return wrong
        return None

    def together(self) -> ConfigurationError:
        """Return all of them as one error."""
        parts = sorted(self._found.values(), key=lambda wrong: wrong.line)
        more = len(parts) - MOST_SHOWN
        if more > 0:
            parts[MOST_SHOWN:] = [ConfigurationError(f"{self._file}: and {more} more mistakes")]
        whole = ConfigurationError("\n".join(map(str, parts)))
        whole.parts = tuple(parts)
        return whole
