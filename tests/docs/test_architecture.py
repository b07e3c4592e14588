"""ARCHITECTURE.md stays short, and speaks of what is there."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "ARCHITECTURE.md").read_text()
PACKAGES: Final = (
    "wire",
    "offset_translation",
    "runtime",
    "mirror",
    "failover",
    "spark_audit",
    "broker",
    "demo",
)
MOST_LINES: Final = 250
MANY_MODULES: Final = 20
QUOTED: Final = re.compile(r"`([^`\s]+)`")
PATH: Final = re.compile(r"\w+(/[\w.]+)+")


def paths_in(text: str) -> set[str]:
    """Return the paths that a text quotes; a test behind `::` is no part of one."""
    quoted = (found.partition("::")[0] for found in QUOTED.findall(text))
    return {name for name in quoted if PATH.fullmatch(name) or name in PACKAGES}


def folders() -> Iterator[str]:
    """Yield every folder of the packages that holds modules."""
    for package in PACKAGES:
        for marker in sorted((ROOT / package).rglob("__init__.py")):
            yield marker.parent.relative_to(ROOT).as_posix()


def count_modules(folder: str) -> int:
    """Return how many modules a folder itself holds, without its `__init__`."""
    return sum(file.name != "__init__.py" for file in (ROOT / folder).glob("*.py"))


def section(title: str) -> str:
    """Return what stands under a heading."""
    _, _, rest = PAGE.partition(f"# {title}\n")
    assert rest, f"there is no heading {title!r}"
    return re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= MOST_LINES


def test_every_path_exists() -> None:
    paths = paths_in(PAGE)
    assert len(paths) > 40, "the page names the modules of each way"
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def test_every_invariant_names_a_test_that_exists() -> None:
    invariants = re.split(
        r"^\d+\. ", section("Invariants that have caused bugs, and their tests"), flags=re.MULTILINE
    )
    named = [re.findall(r"`(tests/\S+)::(test_\w+)`", text) for text in invariants[1:]]
    assert all(len(tests) == 1 for tests in named)
    missing = [
        f"{file}::{name}"
        for [(file, name)] in named
        if f"def {name}(" not in (ROOT / file).read_text()
    ]
    assert missing == []


def test_every_room_is_described() -> None:
    described = paths_in(section("Rooms"))
    rooms = {folder for folder in folders() if "/" in folder}
    assert sorted(rooms - described) == []


def test_each_folder_of_many_modules_has_its_reason() -> None:
    given = paths_in(section(f"Folders of more than {MANY_MODULES} modules"))
    of_tests = (path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*"))
    many = {one for one in (*folders(), *of_tests) if count_modules(one) > MANY_MODULES}
    assert many == given


@pytest.mark.parametrize("package", ["mirror", "spark_audit"])
def test_the_floors_are_those_of_the_import_contract(package: str) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    [floors] = [one["layers"] for one in contracts if one.get("containers") == [package]]
    [told] = re.findall(
        rf"^- `{package}` has floors[^:]*: (.*?)\.$", PAGE, re.MULTILINE | re.DOTALL
    )
    assert re.findall(r"`([^`]+)`", told) == floors


def contracts() -> list[dict[str, Any]]:
    """Return what import-linter enforces."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


@pytest.mark.parametrize("package", ["mirror", "spark_audit", "failover", "runtime"])
def test_the_floors_on_the_page_are_those_that_are_enforced(package: str) -> None:
    (contract,) = [one for one in contracts() if one.get("containers") == [package]]
    told = re.search(rf"^- `{package}` has floors[^:]*: (.*?)\.$", PAGE, re.MULTILINE | re.DOTALL)
    assert told is not None
    floors = re.findall(r"`([^`]+)`", told.group(1).partition(". ")[0])
    assert floors == contract["layers"]
    assert contract["exhaustive"], "a new folder would be on no floor"


def test_every_module_of_the_codec_is_kept_from_io() -> None:
    (contract,) = [one for one in contracts() if "wire.messages" in one.get("source_modules", [])]
    parts = {f"wire.{path.stem}" for path in (ROOT / "wire").iterdir() if is_part(path)}
    assert set(contract["source_modules"]) == parts - {"wire.net"}


def is_part(path: Path) -> bool:
    """Tell whether it is a module or a folder of modules."""
    return path.name != "__init__.py" and (path.suffix == ".py" or (path / "__init__.py").exists())
