"""`python -m tests.bench.agreement A.json B.json`: do two runs of the benchmark say the same?

Lists each ratio's medians in both files and how far they are apart. Exit status: 0 they agree on
every ratio, 1 some differ by more than 15 % or stand in one file only, 2 a file cannot be read.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.bench.results import NOISE

TOLERANCE: Final = 0.15
AGREES: Final = 0
DIFFERS: Final = 1
BAD_INPUT: Final = 2

Key = tuple[str, str, str, str]
"""Bench, workload, of, to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One ratio in two runs; None where a run has none."""

    key: Key
    first: float | None
    second: float | None
    noise: float = 0.0
    """Ratios up to this are the same: all of them say "nothing, beside that"."""

    @property
    def difference(self) -> float | None:
        """Return how much larger the larger one is, as a share of the smaller; None: unknown."""
        if self.first is None or self.second is None:
            return None
        small, large = sorted((self.first, self.second))
        if large <= self.noise:
            return 0.0
        return (large - small) / small if small else float("inf")

    @property
    def agrees(self) -> bool:
        return self.difference is not None and self.difference <= TOLERANCE


def compare(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Comparison]:
    """Return every ratio of either file, in the order of the files."""
    ours, theirs = _medians(first), _medians(second)
    return [
        Comparison(
            key=key, first=ours.get(key), second=theirs.get(key), noise=NOISE.get(key[0], 0.0)
        )
        for key in dict.fromkeys([*ours, *theirs])
    ]


def lines(compared: Iterable[Comparison]) -> list[str]:
    """Return a line for each ratio; those that differ begin with a mark."""
    return [
        f"{' ' if each.agrees else '!'} {_percent(each.difference):>7}  "
        f"{_figure(each.first):>9} {_figure(each.second):>9}  "
        f"{each.key[0]}: {each.key[1]}: {each.key[2]} / {each.key[3]}"
        for each in compared
    ]


def _medians(content: Mapping[str, Any]) -> dict[Key, float]:
    return {
        (ratio["bench"], ratio["workload"], ratio["of"], ratio["to"]): ratio["median"]
        for ratio in content["ratios"]
    }


def _percent(difference: float | None) -> str:
    return "missing" if difference is None else f"{100 * difference:.1f} %"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the files of the command line and return the exit status."""
    parser = argparse.ArgumentParser(prog="agreement", description="Hold two benchmarks together.")
    parser.add_argument("files", nargs=2, type=Path, metavar="BENCH.JSON")
    files = parser.parse_args(arguments).files
    try:
        first, second = (json.loads(file.read_text()) for file in files)
        compared = compare(first, second)
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"agreement: not two files of the benchmark: {error!r}\n")
        return BAD_INPUT
    commits = [content["machine"]["versions"]["this project"] for content in (first, second)]
    differing = [each for each in compared if not each.agrees]
    print("\n".join(lines(compared)))
    print(f"{len(compared)} ratios of {commits[0]} and {commits[1]}: {len(differing)} differ")
    return DIFFERS if differing else AGREES


if __name__ == "__main__":
    sys.exit(main())
