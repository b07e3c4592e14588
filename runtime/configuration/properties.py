"""Java's property file format, as far as Kafka's files use it, with the line of every key."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from runtime.configuration.reading.mistakes import ConfigurationError
from wire.values import frozen

_ESCAPED: Final = re.compile(r"\\(?:u(?P<code>[0-9A-Fa-f]{4})|(?P<character>.?))", re.DOTALL)
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@frozen
class Property:
    """One `key=value`; `place` is `file:line`, or the option it was given with."""

    key: str
    value: str
    place: str

    def wrong(self, reason: str) -> ConfigurationError:
        """Return the error that names this setting."""
        return ConfigurationError(f"{self.place}: {self.key}: {reason}")


def read_properties(path: Path) -> dict[str, Property]:
    """Return the settings of a file by key; the last one of a key wins, as in Java.

    Raises ConfigurationError when the file cannot be read or a line has no key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: not UTF-8 at byte {error.start}") from error
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    return {
        key: Property(key=key, value=value, place=f"{path}:{number}")
        for number, key, value in _pairs(path, text)
    }


def parse_override(text: str) -> Property:
    """Return the setting of `--override key=value`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError(f"--override {text}: expected key=value")
    return Property(key=key.strip(), value=value.strip(), place="--override")


def _pairs(path: Path, text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in _logical_lines(text):
        key, value = _split(line)
        if not key:
            raise ConfigurationError(f"{path}:{number}: a line without a key: {line[:40]}")
        place = f"{path}:{number}"
        yield number, _unescape(key, place), _unescape(value.rstrip(), place)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield what is neither blank nor a comment, joined over trailing backslashes."""
    pending, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.lstrip()
        if not pending and (not line or line[0] in "#!"):
            continue
        first = first if pending else number
        if _continues(line):
            pending += line[:-1]
            continue
        yield first, pending + line
        pending = ""
    if pending:
        yield first, pending


def _continues(line: str) -> bool:
    """Return whether a line ends in an odd number of backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """Split at the first `=`, `:` or blank that no backslash hides."""
    position = 0
    while position < len(line) and line[position] not in "=: \t":
        position += 2 if line[position] == "\\" else 1
    rest = line[position:].lstrip()
    return line[:position], rest[1:].lstrip() if rest[:1] in {"=", ":"} else rest


def _unescape(text: str, place: str) -> str:
    def unescaped(found: re.Match[str]) -> str:
        code, character = found["code"], found["character"]
        if character == "u" and code is None:
            raise ConfigurationError(f"{place}: \\u is not followed by four hexadecimal digits")
        return chr(int(code, 16)) if code else _ESCAPES.get(character, character)

    return _ESCAPED.sub(unescaped, text)
