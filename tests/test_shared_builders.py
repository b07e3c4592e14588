"""What several tests need is built in modules of its own, not in one of the tests."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
MENTION = re.compile(r"(?<!def )\btest_\w")
"""Such a name where no test is defined: most modules have none, and are not parsed."""


def imported(module: ast.Module) -> Iterator[str]:
    """Name every module that is imported, those inside of functions too."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)


def is_a_test_module(name: str) -> bool:
    package, _, last = name.rpartition(".")
    file = HERE.parent / Path(*name.split(".")).with_suffix(".py")
    return package.startswith("tests") and last.startswith("test_") and file.exists()


def test_no_module_takes_anything_from_a_test_module() -> None:
    borrowed = [
        f"{file.relative_to(HERE.parent)} imports {name}"
        for file in sorted(HERE.rglob("*.py"))
        if MENTION.search(text := file.read_text())
        for name in dict.fromkeys(imported(ast.parse(text)))
        if is_a_test_module(name)
    ]
    assert borrowed == []


def test_an_import_from_a_test_module_is_seen_however_it_is_written() -> None:
    ways = (
        "from tests.test_shared_builders import HERE",
        "import tests.test_shared_builders",
        "from tests import test_shared_builders",
        "def late():\n    from tests.test_shared_builders import HERE",
    )
    for way in ways:
        assert MENTION.search(way)
        assert any(map(is_a_test_module, imported(ast.parse(way)))), way
    assert not any(map(is_a_test_module, imported(ast.parse("from tests.zookeeper import KEPT"))))


def test_clocks_are_arguments_of_tests() -> None:
    """One that is only used by a mark moves no time: pytest-trio looks at a test's arguments."""
    mark = re.compile(r"usefixtures\([^)]*clock")
    wrong = [str(file) for file in HERE.rglob("*.py") if mark.search(file.read_text())]
    assert wrong == []
