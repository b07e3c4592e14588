"""The commands that messages tell of, read out of the sources.

Such a command stands in backticks, or in a page's `<code>`. Help and reference pages are of no set.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

import failover.cli
import mirror.cli
import spark_audit.cli

ROOT: Final = Path(__file__).parents[2]
PROGRAMS: Final = (failover.cli.PROGRAM, mirror.cli.PROGRAM, spark_audit.cli.PROGRAM)
OF_NO_SET: Final = (
    "failover/cli.py",  # help and reference pages, in all of these
    "mirror/command_lines/",
    "mirror/cli.py",
    "runtime/configuration/",
    "runtime/rights/needed.py",
)
OF_INTEREST: Final = re.compile(r"(`|<code>)(failover|mirror|spark-audit)\b|\.decode\(")
HTML_CODE: Final = re.compile("<code>(.*?)</code>")
THE_SET: Final = "\N{ELEMENT OF}"


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield each string of a module as a whole, docstrings left out."""
    passed: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed.add(node.value)
        if isinstance(node, ast.JoinedStr):
            passed.update(node.values)
            yield "".join(map(_part, node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in passed:
            yield node.value.replace("{of_set}", THE_SET)


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    written = ast.unparse(part.value)
    return THE_SET if written == "of_set" or written.startswith("set_option(") else "{}"


@cache
def sources() -> tuple[tuple[str, ast.AST], ...]:
    """Return the modules that tell of a command or read a node, by name."""
    paths = chain.from_iterable(
        (ROOT / folder).rglob("*.py")
        for folder in ("failover", "mirror", "runtime", "spark_audit", "offset_translation")
    )
    found = ((path.relative_to(ROOT).as_posix(), path.read_text()) for path in paths)
    return tuple(
        (name, ast.parse(text))
        for name, text in found
        if not name.startswith(OF_NO_SET) and OF_INTEREST.search(text)
    )


@cache
def told() -> tuple[tuple[str, str], ...]:
    """Return all their texts, each with the name of its module."""
    return tuple((name, text) for name, module in sources() for text in texts(module))
