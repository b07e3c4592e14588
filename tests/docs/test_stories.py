"""CONTRIBUTING.md says of every story what notices in `make test` that its feature is broken."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.docs.pages import GUARANTEES, ROOT, TEST

PAGE: Final = (ROOT / "CONTRIBUTING.md").read_text()
MARK: Final = "pytest.mark.story"
ROW: Final = re.compile(r"^\| `(tests/[\w/]+\.py)` \|(.*)\|(.*)\|$", re.MULTILINE)
NAMED: Final = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def files_with_stories() -> dict[str, set[str]]:
    """Return the tests that are stories, by file; of a parametrized one, some cases may be."""
    sources = {file: file.read_text() for file in (ROOT / "tests").rglob("test_*.py")}
    return {
        file.relative_to(ROOT).as_posix(): set(stories(text))
        for file, text in sources.items()
        if MARK in text and file != Path(__file__)
    }


def stories(text: str) -> Iterator[str]:
    """Yield the tests of a file all of whose cases are stories."""
    for one in ast.parse(text).body:
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if MARK in map(ast.unparse, one.decorator_list):
            yield one.name


def test_each_file_with_stories_has_a_row() -> None:
    assert sorted(row[0] for row in ROW.findall(PAGE)) == sorted(files_with_stories())


def test_what_notices_is_no_story() -> None:
    marked = files_with_stories()
    for file, _, notices in ROW.findall(PAGE):
        named = NAMED.findall(notices)
        assert named, f"{file}: no test is named"
        for there, test in named:
            text = (ROOT / there).read_text()
            tests = set(re.findall(r"def (test_\w+)", text)) or {"runTest"}
            assert tests - marked.get(there, set()), f"{file}: all of {there} are stories"
            assert not test or test in tests - marked.get(there, set()), f"{file}: {there}::{test}"


def test_every_promise_is_tried_by_a_test_that_is_no_story() -> None:
    marked = files_with_stories()
    for promise in re.split(r"^## \d+\. ", GUARANTEES.read_text(), flags=re.MULTILINE)[1:]:
        tried = [
            test for file, test in TEST.findall(promise) if test not in marked.get(file, set())
        ]
        assert tried, promise.splitlines()[0]
