"""What pages claim and can be looked up: tests, figures, versions, examples."""

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import GUARANTEES, ROOT, TEST, all_pages, blocks
from wire.net import connecting

MODULE = re.compile(r"`((?:\w+/)+\w+\.py)`")
PRESENT = [page for page in all_pages() if page.name != "CHANGELOG.md"]
VERSION = re.compile(r"^## (\d+\.\d+\.\d+) - \d{4}-\d{2}-\d{2}$", re.MULTILINE)
README = ROOT / "README.md"
BENCHMARKS = ROOT / "docs" / "benchmarks.md"
PYTHON = [
    (page, block.first_line, "\n".join(block.lines))
    for page in all_pages()
    for block in blocks(page.read_text())
    if block.language == "python"
]


def missing_tests(text: str) -> list[str]:
    """Return the tests that a text names and that are not in the repository."""
    return [
        f"{file}::{name}"
        for file, name in TEST.findall(text)
        if not (ROOT / file).exists() or f"def {name}(" not in (ROOT / file).read_text()
    ]


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    assert missing_tests(page.read_text()) == []


def missing_modules(text: str) -> list[str]:
    """Return the Python files that a text names by their path and that are not there."""
    return [file for file in MODULE.findall(text) if not (ROOT / file).exists()]


@pytest.mark.parametrize("page", PRESENT, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_that_a_page_names_exists(page: Path) -> None:
    assert missing_modules(page.read_text()) == []


def test_a_module_that_is_not_there_is_found() -> None:
    text = "`wire/net/connecting.py`, `wire/net/gone.py` and `metrics.py`"
    assert missing_modules(text) == ["wire/net/gone.py"]


def test_every_promise_names_tests_that_try_to_break_it() -> None:
    promises = re.split(r"^## \d+\. ", GUARANTEES.read_text(), flags=re.MULTILINE)[1:]
    assert len(promises) == 8
    assert [promise.splitlines()[0] for promise in promises if not TEST.search(promise)] == []


def test_a_test_that_is_not_there_is_found() -> None:
    there = "tests/docs/test_claims.py::test_a_test_that_is_not_there_is_found"
    text = f"`{there}`, `tests/docs/test_claims.py::test_gone`, `tests/gone.py::test_x`"
    assert missing_tests(text) == ["tests/docs/test_claims.py::test_gone", "tests/gone.py::test_x"]


def test_the_figures_of_the_readme_are_those_of_the_benchmarks() -> None:
    known = BENCHMARKS.read_text().splitlines()
    figures = [line for line in README.read_text().splitlines() if line.endswith("** |")]
    assert len(figures) > 5
    assert [line for line in figures if line not in known] == []


def test_the_readme_is_read_in_one_go() -> None:
    assert len(README.read_text().splitlines()) <= 150


def test_the_version_is_the_newest_of_the_changelog() -> None:
    newest = VERSION.findall((ROOT / "CHANGELOG.md").read_text())[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == newest
    assert f'client_software_version="{newest}"' in Path(connecting.__file__).read_text()


def imported(code: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for name in node.names:
                yield node.module, name.name


@pytest.mark.parametrize(
    ("page", "line", "code"), PYTHON, ids=[f"{page.name}:{line}" for page, line, _ in PYTHON]
)
def test_examples_are_python_and_import_what_there_is(page: Path, line: int, code: str) -> None:
    for module, name in imported(code):
        assert hasattr(importlib.import_module(module), name), f"{page}:{line}: {module}.{name}"
