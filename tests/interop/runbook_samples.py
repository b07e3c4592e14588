"""What the commands of the runbooks said, written below each as a sample.

    python -m tests.interop.runbook_samples TOLD    writes the samples of a run into docs/runbooks

TOLD is the file `told.jsonl` of a run of `test_runbooks.py`. A sample has the command behind a `$`,
and at most so many lines of what it said. Folders and names of the machine are left out.
"""

import getpass
import json
import re
import shlex
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.docs.pages import ROOT

RUNBOOKS: Final = ROOT / "docs" / "runbooks"
MOST_LINES: Final = 16
FIRST_LINES: Final = 7
"""Of an output that is cut, so many of its first lines are kept; the others are the last ones."""
MOST_WIDTH: Final = 118
LEFT_OUT: Final = "..."
_BLOCK: Final = re.compile(r"```sh\n(?P<commands>.*?)```\n(?:\n```text\n\$ .*?```\n)?", re.DOTALL)
_SAMPLE: Final = re.compile(r"```text\n(?P<lines>\$ .*?)```\n", re.DOTALL)
_DIGEST: Final = re.compile(r"(digest:[\w-]+:)\S+")
_STATUS: Final = re.compile(r"  # (?P<status>\d): .*$")


def neutral(said: str, folder: str) -> list[str]:
    """Return the lines of an output without this machine's folder and name, cut to a sample."""
    text = said.replace(f"{folder}/", "").replace(socket.gethostname(), "ops-1")
    text = text.replace(f"by {getpass.getuser()} on", "by jo on")
    text = _DIGEST.sub(r"\1...", text)
    lines = [line.rstrip() for line in text.splitlines()]
    lines = [line if len(line) <= MOST_WIDTH else f"{line[: MOST_WIDTH - 3]}..." for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    if len(lines) > MOST_LINES:
        lines = [*lines[:FIRST_LINES], LEFT_OUT, *lines[FIRST_LINES + 1 - MOST_LINES :]]
    return lines


def samples_of(text: str) -> Mapping[str, Sequence[str]]:
    """Return the samples of a page by the command, as it is typed."""
    found: dict[str, list[str]] = {}
    for block in _SAMPLE.finditer(text):
        lines: list[str] = []
        for line in block["lines"].splitlines():
            if line.startswith("$ "):
                lines = found[line.removeprefix("$ ")] = []
            else:
                lines.append(line)
    return found


def with_samples(text: str, told: Iterator[Mapping[str, Any]], folder: str) -> str:
    """Return a page with a sample below each block of commands; `told` is in the page's order."""

    def block(match: re.Match[str]) -> str:
        lines: list[str] = []
        for command in match["commands"].splitlines():
            typed, status = _STATUS.sub("", command), _STATUS.search(command)
            wanted = (shlex.split(typed), 0 if status is None else int(status["status"]))
            # What was given again until it did has told other things before.
            one = next(one for one in told if (one["words"], one["status"]) == wanted)
            lines += [f"$ {typed}", *neutral(one["said"], folder)]
        return f"```sh\n{match['commands']}```\n\n```text\n{chr(10).join(lines)}\n```\n"

    return _BLOCK.sub(block, text)


def main(file: Path) -> None:
    """Write the samples of a run."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for name in sorted({one["page"] for one in lines} - {""}):
        page = RUNBOOKS / f"{name}.md"
        of_page = iter([one for one in lines if one["page"] == name])
        page.write_text(with_samples(page.read_text(), of_page, str(file.parent)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
