"""One mapping of a YAML file: its keys are taken one by one, and each complaint names its line.

A section goes on behind a mistake as far as what follows does not hang on it: keys that may be
absent, and whatever is read by `attempt`, are remembered as wrong, and something else stands for
them. No such value leaves the section, since `finish` raises when anything in it is wrong.
"""

import difflib
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, overload

import yaml

from runtime.configuration.reading.addresses import Address, parse_address
from runtime.configuration.reading.merge import Merge
from runtime.configuration.reading.mistakes import ConfigurationError, Mistakes, mistake
from wire.net.secret_file import (
    BadSecretFile,
    FileSecret,
    LastLook,
    exposure_of,
    open_secret,
    read_secret,
)
from wire.net.security import Secret

_LOG = logging.getLogger(__name__)

T = TypeVar("T")
Default = TypeVar("Default")

FOR_PEOPLE: Final = "x-"
"""How a section of the file begins that no program reads: there is room for anchors."""
_VARIABLE: Final = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")

REQUIRED: Final = "required"
NO_DEFAULT: Final = "none"
UNBOUNDED: Final = 1 << 62


class Key(NamedTuple):
    """How one key is read, as the reference page and the schema show it."""

    kind: str
    default: str
    """What counts where the key is absent: a value, REQUIRED or NO_DEFAULT."""
    schema: Mapping[str, object]
    """What its value may be, as JSON Schema says it."""
    section: str
    """The path of the section that it stands in; its own name may have dots."""


TEXT: Final[Mapping[str, object]] = {"type": "string", "minLength": 1}
TEXTS: Final[Mapping[str, object]] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
}


@dataclass(slots=True)
class FileReading:
    """What is known of the reading of one file, shared by all of its sections."""

    file: str
    mistakes: Mistakes
    asked: dict[str, Key] = field(default_factory=dict)
    """Every key that was asked for, by its whole name."""
    literal_secrets: list[str] = field(default_factory=list)
    """The keys whose secrets stand in the file itself."""


@dataclass(slots=True)
class Section:
    """One mapping of the file; reading a key takes it, `finish` complains about the others."""

    path: str
    node: yaml.MappingNode
    values: Mapping[str, yaml.Node]
    reading: FileReading
    known: list[str] = field(default_factory=list)

    def error(self, key: str, problem: str) -> ConfigurationError:
        """Return the complaint about `key`, at the line where its value stands."""
        node = self.values.get(key, self.node)
        return mistake(self.reading.file, node, self._name(key), problem)

    def missing(self, key: str) -> ConfigurationError:
        """Return the complaint about a required key: misspelt, if a key like it stands there.

        Where it stands there and is wrong, the complaint is that.
        """
        wrong = self.reading.mistakes.of([self._name(key)])
        if wrong is not None:
            return wrong
        near = difflib.get_close_matches(key, [one for one in self.values if one not in self.known])
        if near:
            return self.error(near[0], f"unknown key; did you mean {key!r}?")
        return self.error(key, "is missing")

    def complaint(self, problem: str) -> ConfigurationError:
        """Return the complaint about this mapping as a whole."""
        return mistake(self.reading.file, self.node, self.path or "the file", problem)

    def complain(self, key: str, problem: str) -> None:
        """Remember that this is wrong with a key, and go on."""
        self.reading.mistakes.add(self.error(key, problem))

    @overload
    def attempt(self, read: Callable[[], T]) -> T | None: ...

    @overload
    def attempt(self, read: Callable[[], T], instead: Default) -> T | Default: ...

    def attempt(self, read: Callable[[], Any], instead: Any = None) -> Any:
        """Return what is read; what is wrong with it is remembered, and `instead` stands for it."""
        try:
            return read()
        except ConfigurationError as wrong:
            self.reading.mistakes.add(wrong)
            return instead

    @overload
    def part(self, key: str, read: Callable[["Section"], T]) -> T | None: ...

    @overload
    def part(self, key: str, read: Callable[["Section"], T], instead: Default) -> T | Default: ...

    def part(self, key: str, read: Callable[["Section"], Any], instead: Any = None) -> Any:
        """Return what is read of the section at `key`, empty if absent; else as `attempt` does."""
        return self.attempt(lambda: read(self.section(key, required=False)), instead)

    def require(self, *keys: str) -> None:
        """Raise what is wrong with one of these keys: what follows hangs on them."""
        wrong = self.reading.mistakes.of(map(self._name, keys))
        if wrong is not None:
            raise wrong

    def string(self, key: str, default: str | None = None) -> str:
        """Return a text; raises ConfigurationError when absent without a default, or empty."""
        self._ask(key, "text", REQUIRED if default is None else default, TEXT)
        read = partial(self._text, key, default)
        return read() if default is None else self.attempt(read, default)

    def time_or_word(self, key: str, default: str) -> str:
        """Return a text, or a time as the file has it: YAML takes one without quotes for its own.

        The caller reads it.
        """
        self._ask(key, "text", default, TEXT)
        node = self.values.get(key)
        if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:timestamp":
            return str(node.value)
        return self.attempt(partial(self._text, key, default), default)

    def optional_string(self, key: str) -> str | None:
        """Return a text that is not empty, None when the key is absent."""
        self._ask(key, "text", NO_DEFAULT, TEXT)
        return self.attempt(partial(self._text, key, None)) if key in self.values else None

    def integer(self, key: str, default: int | None, *, least: int, most: int = UNBOUNDED) -> int:
        """Return a whole number within [least, most]."""
        shown = None if default is None else f"{default}"
        self._ask(key, _range(least, most), shown or REQUIRED, _bounds(least, most))
        read = partial(self._number, key, shown, least, most)
        return read() if default is None else self.attempt(read, default)

    def optional_integer(self, key: str, *, least: int, most: int = UNBOUNDED) -> int | None:
        """Return a whole number within [least, most], None when the key is absent."""
        self._ask(key, _range(least, most), NO_DEFAULT, _bounds(least, most))
        if key not in self.values:
            return None
        return self.attempt(partial(self._number, key, None, least, most))

    def boolean(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        shown = str(default).lower()
        self._ask(key, "true or false", shown, {"type": "boolean"})
        read = partial(self._scalar, key, "bool", "true or false", shown)
        return self.attempt(read, shown).lower() in {"true", "yes", "on"}

    def choice(self, key: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        """Return one of the allowed words."""
        self._ask(key, _either(allowed), default or REQUIRED, {"enum": list(allowed)})
        read = partial(self._one_of, key, allowed, default)
        return read() if default is None else self.attempt(read, default)

    def optional_choice(self, key: str, allowed: tuple[str, ...]) -> str | None:
        """Return one of the allowed words, None when the key is absent."""
        self._ask(key, _either(allowed), NO_DEFAULT, {"enum": list(allowed)})
        if key not in self.values:
            return None
        return self.attempt(partial(self._one_of, key, allowed, None))

    def word(self, key: str, allowed: tuple[str, ...], default: str) -> str:
        """Return one of the allowed words in lower case, "" where the key has nothing behind it."""
        return self.attempt(partial(self._word, key, allowed, default), default)

    def file_path(self, key: str, *, is_secret: bool = False) -> Path | None:
        """Return a file that can be read, relative to the configuration's; None when absent.

        Where others may read one with a secret, the log says so.
        """
        return self.attempt(partial(self._file_path, key, is_secret=is_secret))

    def secret(self, key: str, *, required: bool = True) -> Secret | None:
        """Return a secret of the file, of the environment (`${NAME}`), or of the file `<key>_file`.

        Complaints do not show it.
        """
        read = partial(self._secret, key, required=required)
        return read() if required else self.attempt(read)

    def strings(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Return a list of texts; one text alone stands for a list of one."""
        read = partial(self._strings, key, default)
        return read() if default is None else self.attempt(read, default)

    def addresses(self, key: str) -> tuple[Address, ...]:
        """Return a list of `host:port`, at least one."""
        texts = self._strings(key, None)
        self._ask(key, "list of `host:port`", REQUIRED, TEXTS)
        if not texts:
            raise self.error(key, "needs at least one host:port")
        try:
            return tuple(parse_address(part.strip()) for text in texts for part in text.split(","))
        except ValueError as problem:
            raise self.error(key, str(problem)) from None

    def section(self, key: str, *, required: bool = True) -> "Section":
        """Return the mapping under `key`; when it may be absent, an empty one."""
        self.known.append(key)
        node = self.values.get(key)
        if node is None and not required:
            node = yaml.MappingNode("tag:yaml.org,2002:map", [], self.node.start_mark)
        if node is None:
            raise self.missing(key)
        return _section(node, self._name(key), self.reading)

    def sections(self, key: str) -> Iterator["Section"]:
        """Yield the mappings listed under `key`, at least one."""
        node = self.values.get(key)
        if node is None:
            raise self.missing(key)
        self.known.append(key)
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            raise self.error(key, "must be a list of one or more")
        for index, item in enumerate(node.value):
            path = f"{self._name(key)}[{index}]"
            found = self.attempt(partial(_section, item, path, self.reading))
            if found is not None:
                yield found

    def named_sections(self) -> Iterator[tuple[str, "Section"]]:
        """Yield each key of this mapping with the mapping under it."""
        for name in self.values:
            found = self.attempt(partial(self.section, name))
            if found is not None:
                yield name, found

    def finish(self) -> None:
        """Raise where anything in this section is wrong; a key that nobody read is."""
        for key in self.values:
            if key not in self.known and (self.path or not key.startswith(FOR_PEOPLE)):
                near = difflib.get_close_matches(key, self.known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                self.complain(key, f"unknown key{hint}")
        wrong = self.reading.mistakes.within(self.path)
        if wrong is not None:
            raise wrong

    def _ask(self, key: str, kind: str, default: str, schema: Mapping[str, object]) -> None:
        """Take a key; what is said of it last counts."""
        self.known.append(key)
        self.reading.asked[self._name(key)] = Key(kind, default, schema, self.path)

    def _name(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def _text(self, key: str, default: str | None) -> str:
        return self._usable(key, self._scalar(key, "str", "a text", default))

    def _number(self, key: str, default: str | None, least: int, most: int) -> int:
        text = self._scalar(key, "int", "a whole number", default)
        try:
            value = int(text.replace("_", ""), 0)
        except ValueError:
            raise self.error(key, f"{text!r} is not a whole number") from None
        if not least <= value <= most:
            raise self.error(key, f"{value} is not between {least} and {most}")
        return value

    def _one_of(self, key: str, allowed: tuple[str, ...], default: str | None) -> str:
        word = self._text(key, default)
        if word not in allowed:
            near = difflib.get_close_matches(word, allowed, n=1, cutoff=0.8)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise self.error(key, f"{word!r} is not one of {', '.join(allowed)}{hint}")
        return word

    def _word(self, key: str, allowed: tuple[str, ...], default: str) -> str:
        kind = f"{_either(allowed)} or nothing"
        schema = {"anyOf": [{"type": "null"}, {"type": "string", "pattern": _any_case(allowed)}]}
        self._ask(key, kind, default, schema)
        node = self.values.get(key)
        if node is None:
            return default
        word = node.value.lower() if isinstance(node, yaml.ScalarNode) else "a list or mapping"
        if word not in ("", *allowed):
            raise self.error(key, f"{word!r} is not one of {', '.join(allowed)}")
        return str(word)

    def _file_path(self, key: str, *, is_secret: bool) -> Path | None:
        self._ask(key, "file", NO_DEFAULT, TEXT)
        if key not in self.values:
            return None
        path = Path(self.reading.file).parent / self._text(key, None)
        try:
            with open_secret(path):
                exposure = exposure_of(path) if is_secret else None
        except BadSecretFile as problem:
            raise self.error(key, f"{path}: {problem}") from None
        if exposure is not None:
            _LOG.warning("%s", self.error(key, f"{path}: {exposure}"))
        return path

    def _secret(self, key: str, *, required: bool) -> Secret | None:
        file_key = f"{key}_file"
        file = self._file_path(file_key, is_secret=True)
        node = self.values.get(key)
        self._ask(key, "secret", f"required, or `{file_key}`" if required else NO_DEFAULT, TEXT)
        if node is not None and file is not None:
            raise self.error(file_key, f"stands beside {key!r}: one of them is enough")
        if file is not None:
            try:
                text, look = read_secret(file), LastLook(exposure_of(file))
            except BadSecretFile as problem:
                raise self.error(file_key, f"{file}: {problem}") from None
            name = self._name(file_key)
            return FileSecret(file=file, last_known=text, key=name, last_look=look)
        if node is None:
            if required:
                raise self.missing(key)
            return None
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str":
            raise self.error(key, "must be a text: put it in quotes")
        variable = _VARIABLE.fullmatch(node.value)
        if variable is None:
            self.reading.literal_secrets.append(self._name(key))
            return self._usable(key, str(node.value))
        if variable["name"] not in os.environ:
            raise self.error(key, f"the environment has no variable {variable['name']}")
        return self._usable(key, os.environ[variable["name"]])

    def _strings(self, key: str, default: tuple[str, ...] | None) -> tuple[str, ...]:
        self._ask(key, "list of texts", REQUIRED if default is None else " ".join(default), TEXTS)
        node = self.values.get(key)
        if node is None:
            if default is None:
                raise self.missing(key)
            return default
        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for item in items:
            if not isinstance(item, yaml.ScalarNode) or item.tag != "tag:yaml.org,2002:str":
                raise mistake(self.reading.file, item, self._name(key), "must be a list of texts")
        return tuple(item.value for item in items)

    def _usable(self, key: str, text: str) -> str:
        """Return it; complain of what can neither be sent nor name a file, without showing it."""
        if not text:
            raise self.error(key, "must not be empty")
        if "\0" in text:
            raise self.error(key, "must not hold the character NUL")
        try:
            text.encode()
        except UnicodeEncodeError:  # half a character, or bytes of the environment that are no text
            raise self.error(key, "cannot be said in UTF-8") from None
        return text

    def _scalar(self, key: str, tag: str, kind: str, default: str | None) -> str:
        node = self.values.get(key)
        if node is None:
            if default is None:
                raise self.missing(key)
            return default
        if not isinstance(node, yaml.ScalarNode) or node.tag != f"tag:yaml.org,2002:{tag}":
            shown = repr(node.value) if isinstance(node, yaml.ScalarNode) else "a list or mapping"
            raise self.error(key, f"must be {kind}, not {shown}")
        return str(node.value)


def top_section(file: str, node: yaml.Node) -> Section:
    """Return the file's top mapping; raises ConfigurationError where it is none."""
    return _section(node, "", FileReading(file, Mistakes(file)))


def _section(node: yaml.Node, path: str, reading: FileReading) -> Section:
    if not isinstance(node, yaml.MappingNode):
        problem = "must be a mapping of keys to values"
        raise mistake(reading.file, node, path or "the file", problem)
    values = Merge(file=reading.file, path=path).into(node)
    return Section(path=path, node=node, values=values, reading=reading)


def _either(words: tuple[str, ...]) -> str:
    return " or ".join(f"`{one}`" for one in words)


def _range(least: int, most: int) -> str:
    return f"whole number, {least} " + ("or more" if most == UNBOUNDED else f"to {most}")


def _bounds(least: int, most: int) -> Mapping[str, object]:
    limits = {} if most == UNBOUNDED else {"maximum": most}
    return {"type": "integer", "minimum": least, **limits}


def _any_case(words: tuple[str, ...]) -> str:
    """Return a pattern that takes each word in small and large letters, and nothing at all."""
    either = ("".join(f"[{one.upper()}{one}]" for one in word) for word in words)
    return f"^({'|'.join(either)})?$"
