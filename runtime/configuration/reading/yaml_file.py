"""One YAML file as nodes, each of which knows its line."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from runtime.configuration.reading.mistakes import ConfigurationError
from runtime.configuration.reading.section import Section, top_section

MAX_FILE_BYTES: Final = 1 << 20
Compose: TypeAlias = Callable[[str], list[yaml.Node | None]]
_BEYOND_UNICODE: Final = re.compile(r"\\U(?!000|0010)[0-9A-Fa-f]{8}")


def as_yaml(document: Mapping[str, Any]) -> str:
    """Return the text of a file that says this, keys in their order."""
    text: str = yaml.safe_dump(dict(document), sort_keys=False, default_flow_style=None, width=100)
    return text


def read_file(path: Path) -> Section:
    """Return the file's top mapping; raises ConfigurationError for anything unreadable."""
    [top] = _read(path, lambda text: [yaml.compose(text, Loader=yaml.SafeLoader)])
    return top


def read_documents(path: Path) -> list[Section]:
    """Return the top mapping of each document of a file, as `---` parts them.

    An empty document is left out. Raises ConfigurationError for anything unreadable.
    """
    return _read(
        path, lambda text: [*filter(_has_content, yaml.compose_all(text, yaml.SafeLoader))]
    )


def _has_content(node: yaml.Node) -> bool:
    return node.tag != "tag:yaml.org,2002:null"


def _read(path: Path, compose: Compose) -> list[Section]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ConfigurationError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        nodes = _compose(path, path.read_text(encoding="utf-8"), compose)
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
    tops = [top_section(str(path), node) for node in nodes if node is not None]
    if not tops:
        raise ConfigurationError(f"{path}: is empty")
    return tops


def _compose(path: Path, text: str, compose: Compose) -> list[yaml.Node | None]:
    """Do what `compose` does; of one of its faults it says neither kind nor line."""
    try:
        return compose(text)
    except (OverflowError, ValueError) as problem:
        escape = _BEYOND_UNICODE.search(text)
        if escape is None:
            raise ConfigurationError(f"{path}: not YAML: {problem}") from problem
        line = text.count("\n", 0, escape.start()) + 1
        raise ConfigurationError(f"{path}:{line}: not YAML: {escape[0]} is no character") from None
