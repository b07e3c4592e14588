"""Reading a YAML file key by key, so that every complaint names file, line and key."""

import difflib
import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from wire.net.secret_file import BadSecretFile, FileSecret, exposure_of, open_secret, read_secret
from wire.net.security import Secret

_LOG = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 1 << 20
MAX_LABEL: Final = 63
_ADDRESS: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})")
_VARIABLE: Final = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")
_BEYOND_UNICODE: Final = re.compile(r"\\U(?!000|0010)[0-9A-Fa-f]{8}")

Address = tuple[str, int]

REQUIRED: Final = "required"
NO_DEFAULT: Final = "none"
UNBOUNDED: Final = 1 << 62


class ConfigurationError(ValueError):
    """One line: `file:line: key: what is wrong`."""


def parse_address(text: str) -> Address:
    """Return (host, port) of `host:port`; raises ValueError saying what is wrong."""
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not host:port")
    port = int(found["port"])
    if not 0 < port < 65536:
        raise ValueError(f"port {port} of {text!r} is not between 1 and 65535")
    if not all(0 < len(part) <= MAX_LABEL for part in found["host"].removesuffix(".").split(".")):
        raise ValueError(f"{text!r}: each part of a host's name has 1 to {MAX_LABEL} characters")
    return found["host"].strip("[]"), port


def in_brackets(host: str) -> str:
    """Return a host as it stands before `:port`: its own colons would else be taken for that."""
    return f"[{host}]" if ":" in host else host


class Key(NamedTuple):
    """How one key is read, as the reference page shows it."""

    kind: str
    default: str
    """What counts where the key is absent: a value, REQUIRED or NO_DEFAULT."""


@dataclass(slots=True)
class Section:
    """One mapping of the file; reading a key takes it, `finish` complains about the others."""

    file: str
    path: str
    node: yaml.MappingNode
    values: Mapping[str, yaml.Node]
    asked: dict[str, Key]
    """Every key that was asked for, by its whole name; one dict for all sections of a file."""
    known: list[str] = field(default_factory=list)

    def error(self, key: str, problem: str) -> ConfigurationError:
        """Return the complaint about `key`, at the line where its value stands."""
        node = self.values.get(key, self.node)
        return _error(self.file, node, self._name(key), problem)

    def missing(self, key: str) -> ConfigurationError:
        """Return the complaint about a required key: misspelt, if a key like it stands there."""
        near = difflib.get_close_matches(key, [one for one in self.values if one not in self.known])
        if near:
            return self.error(near[0], f"unknown key; did you mean {key!r}?")
        return self.error(key, "is missing")

    def complaint(self, problem: str) -> ConfigurationError:
        """Return the complaint about this mapping as a whole."""
        return _error(self.file, self.node, self.path or "the file", problem)

    def string(self, key: str, default: str | None = None) -> str:
        """Return a text; raises ConfigurationError when absent without a default, or empty."""
        return self._usable(key, self._scalar(key, "tag:yaml.org,2002:str", "a text", default))

    def optional_string(self, key: str) -> str | None:
        """Return a text that is not empty, None when the key is absent."""
        text = self.string(key) if key in self.values else None
        self._ask(key, "text", NO_DEFAULT)
        return text

    def integer(self, key: str, default: int | None, *, least: int, most: int = UNBOUNDED) -> int:
        """Return a whole number within [least, most]."""
        text = self._scalar(
            key,
            "tag:yaml.org,2002:int",
            "a whole number",
            None if default is None else f"{default}",
        )
        self._ask(key, _range(least, most), REQUIRED if default is None else f"{default}")
        try:
            value = int(text.replace("_", ""), 0)
        except ValueError:
            raise self.error(key, f"{text!r} is not a whole number") from None
        if not least <= value <= most:
            raise self.error(key, f"{value} is not between {least} and {most}")
        return value

    def boolean(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        text = self._scalar(key, "tag:yaml.org,2002:bool", "true or false", str(default).lower())
        return text.lower() in {"true", "yes", "on"}

    def choice(self, key: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        """Return one of the allowed words."""
        word = self.string(key, default)
        self._ask(key, " or ".join(f"`{one}`" for one in allowed), default or REQUIRED)
        if word not in allowed:
            near = difflib.get_close_matches(word, allowed, n=1, cutoff=0.8)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise self.error(key, f"{word!r} is not one of {', '.join(allowed)}{hint}")
        return word

    def file_path(self, key: str, *, is_secret: bool = False) -> Path | None:
        """Return a file that can be read, relative to the configuration's; None when absent.

        Where others may read one with a secret, the log says so.
        """
        self._ask(key, "file", NO_DEFAULT)
        if key not in self.values:
            return None
        path = Path(self.file).parent / self.string(key)
        self._ask(key, "file", NO_DEFAULT)
        try:
            with open_secret(path):
                exposure = exposure_of(path) if is_secret else None
        except BadSecretFile as problem:
            raise self.error(key, f"{path}: {problem}") from None
        if exposure is not None:
            _LOG.warning("%s", self.error(key, f"{path}: {exposure}"))
        return path

    def secret(self, key: str, *, required: bool = True) -> Secret | None:
        """Return a secret of the file, of the environment (`${NAME}`), or of the file `<key>_file`.

        Complaints do not show it.
        """
        file_key = f"{key}_file"
        file = self.file_path(file_key, is_secret=True)
        node = self.values.get(key)
        self._ask(key, "secret", f"required, or `{file_key}`" if required else NO_DEFAULT)
        if node is not None and file is not None:
            raise self.error(file_key, f"stands beside {key!r}: one of them is enough")
        if file is not None:
            try:
                text = read_secret(file)
            except BadSecretFile as problem:
                raise self.error(file_key, f"{file}: {problem}") from None
            return FileSecret(file=file, last_known=text, key=self._name(file_key))
        if node is None:
            if required:
                raise self.missing(key)
            return None
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str":
            raise self.error(key, "must be a text: put it in quotes")
        variable = _VARIABLE.fullmatch(node.value)
        if variable is None:
            return self._usable(key, str(node.value))
        if variable["name"] not in os.environ:
            raise self.error(key, f"the environment has no variable {variable['name']}")
        return self._usable(key, os.environ[variable["name"]])

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

    def optional_integer(self, key: str, *, least: int, most: int = UNBOUNDED) -> int | None:
        """Return a whole number within [least, most], None when the key is absent."""
        has_value = key in self.values
        number = self.integer(key, None, least=least, most=most) if has_value else None
        self._ask(key, _range(least, most), NO_DEFAULT)
        return number

    def strings(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Return a list of texts; one text alone stands for a list of one."""
        self._ask(key, "list of texts", REQUIRED if default is None else " ".join(default))
        node = self.values.get(key)
        if node is None:
            if default is None:
                raise self.missing(key)
            return default
        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for item in items:
            if not isinstance(item, yaml.ScalarNode) or item.tag != "tag:yaml.org,2002:str":
                raise _error(self.file, item, self._name(key), "must be a list of texts")
        return tuple(item.value for item in items)

    def addresses(self, key: str) -> tuple[Address, ...]:
        """Return a list of `host:port`, at least one."""
        texts = self.strings(key)
        self._ask(key, "list of `host:port`", REQUIRED)
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
        return self._below(node, self._name(key))

    def sections(self, key: str) -> Iterator["Section"]:
        """Return the mappings listed under `key`, at least one."""
        node = self.values.get(key)
        if node is None:
            raise self.missing(key)
        self.known.append(key)
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            raise self.error(key, "must be a list of one or more")
        for index, item in enumerate(node.value):
            yield self._below(item, f"{self._name(key)}[{index}]")

    def named_sections(self) -> Iterator[tuple[str, "Section"]]:
        """Return each key of this mapping with the mapping under it."""
        for name in self.values:
            yield name, self.section(name)

    def finish(self) -> None:
        """Complain about the first key that nobody read."""
        for key in self.values:
            if key not in self.known:
                near = difflib.get_close_matches(key, self.known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise self.error(key, f"unknown key{hint}")

    def _below(self, node: yaml.Node, path: str) -> "Section":
        return _section(self.file, node, path, self.asked)

    def _ask(self, key: str, kind: str, default: str) -> None:
        """Take a key; what is said of it last counts."""
        self.known.append(key)
        self.asked[self._name(key)] = Key(kind, default)

    def _name(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def _scalar(self, key: str, tag: str, kind: str, default: str | None) -> str:
        self._ask(key, kind.removeprefix("a "), REQUIRED if default is None else default)
        node = self.values.get(key)
        if node is None:
            if default is None:
                raise self.missing(key)
            return default
        if not isinstance(node, yaml.ScalarNode) or node.tag != tag:
            shown = repr(node.value) if isinstance(node, yaml.ScalarNode) else "a list or mapping"
            raise self.error(key, f"must be {kind}, not {shown}")
        return str(node.value)


def as_yaml(document: Mapping[str, Any]) -> str:
    """Return the text of a file that says this, keys in their order."""
    text: str = yaml.safe_dump(dict(document), sort_keys=False, default_flow_style=None, width=100)
    return text


def read_file(path: Path) -> Section:
    """Return the file's top mapping; raises ConfigurationError for anything unreadable."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ConfigurationError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        node = _compose(path, path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ConfigurationError(f"{path}: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise ConfigurationError(f"{path}: not UTF-8 at byte {problem.start}") from problem
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else 0
        raise ConfigurationError(f"{path}:{line}: not YAML: {problem.problem}") from problem
    except yaml.YAMLError as problem:
        raise ConfigurationError(f"{path}: not YAML: {' '.join(f'{problem}'.split())}") from problem
    except RecursionError as problem:
        raise ConfigurationError(f"{path}: not a configuration: nested too deeply") from problem
    if node is None:
        raise ConfigurationError(f"{path}: is empty")
    return _section(str(path), node, "", {})


def _compose(path: Path, text: str) -> yaml.Node | None:
    """Do what `yaml.compose` does; of one of its faults it says neither kind nor line."""
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except (OverflowError, ValueError) as problem:
        escape = _BEYOND_UNICODE.search(text)
        if escape is None:
            raise ConfigurationError(f"{path}: not YAML: {problem}") from problem
        line = text.count("\n", 0, escape.start()) + 1
        raise ConfigurationError(f"{path}:{line}: not YAML: {escape[0]} is no character") from None


def _section(file: str, node: yaml.Node, path: str, asked: dict[str, Key]) -> Section:
    if not isinstance(node, yaml.MappingNode):
        raise _error(file, node, path or "the file", "must be a mapping of keys to values")
    values: dict[str, yaml.Node] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _error(file, key, path or "the file", "a key must be a text")
        if key.value in values:
            raise _error(file, key, f"{path}.{key.value}".lstrip("."), "stands here twice")
        values[str(key.value)] = value
    return Section(file=file, path=path, node=node, values=values, asked=asked)


def _range(least: int, most: int) -> str:
    return f"whole number, {least} " + ("or more" if most == UNBOUNDED else f"to {most}")


def _error(file: str, node: yaml.Node, key: str, problem: str) -> ConfigurationError:
    line = node.start_mark.line + 1 if node.start_mark else 0
    return ConfigurationError(f"{file}:{line}: {key}: {problem}")
