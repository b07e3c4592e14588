"""Commands that the documentation names: whether a program, or the Makefile, has them.

a block     `mirror pause dc1-dc2 orders:3 dc.yaml   text`   is parsed as if it were typed
in a line   `mirror restart --skip`                          command and options must exist
`make drill SEED=7`                                          target and variables must exist
`python -m tests.freshness`                                  module must exist
"""

import contextlib
import io
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

import broker.cli
import failover.cli
import mirror.cli
import spark_audit.cli
from runtime.program.program import Program
from tests.docs.pages import FENCE, ROOT, SPAN, blocks, prose

PROGRAMS: Final[Mapping[str, Program]] = MappingProxyType(
    {
        "mirror": mirror.cli.PROGRAM,
        "failover": failover.cli.PROGRAM,
        "spark-audit": spark_audit.cli.PROGRAM,
        "broker": broker.cli.PROGRAM,
    }
)
BEGINS: Final = re.compile(
    r"^(?:\.venv/bin/)?(?P<program>mirror|failover|spark-audit|broker|make|python)(?= |$)"
)
BEHIND: Final = re.compile(r" {2,}.*| +#.*| +[|>&;].*")
"""What stands behind a command: an explanation, a comment, or the shell's business."""
PICTURE: Final = re.compile(r"[\u2500-\u25ff]")
OPTION: Final = re.compile(r"^--?[a-z]")
VARIABLE: Final = re.compile(r"^(?P<name>[A-Z]+)=")
USED: Final = re.compile(r"\$\((?:if |or )?\$?\(?(?P<name>[A-Z]+)\b")


def commands_of(page: Path) -> Iterator[tuple[int, str, bool]]:
    """Yield line, command, and whether it is whole: whatever a page has of our programs."""
    text = page.read_text()
    for block in blocks(text):
        if block.language not in {"", "sh", "console", "bash"}:
            continue
        for place, line in enumerate(block.lines):
            if BEGINS.match(line.strip()) and not PICTURE.search(line):
                yield block.first_line + place, BEHIND.sub("", line.strip()), True
    for number, line in enumerate(prose(text).splitlines(), start=1):
        for span in SPAN.finditer(line):
            if BEGINS.match(span["code"]) and not FENCE.match(line):
                yield number, span["code"], False


@cache
def complaint(command: str, *, is_whole: bool) -> str | None:
    """Return what is wrong with a command, None if it could be typed."""
    found = BEGINS.match(command)
    assert found is not None, "it is a command"
    try:
        words = shlex.split(command)[1:]
    except ValueError as unquoted:
        return f"{unquoted}"
    program = found["program"]
    if program == "make":
        return _make_complaint(words)
    if program == "python":
        return _module_complaint(words)
    if is_whole:
        return _said_by_parser(program, words)
    return _missing(program, words)


def _said_by_parser(program: str, words: Sequence[str]) -> str | None:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            PROGRAMS[program].parse(list(words))
    except SystemExit as end:
        return said.getvalue().strip().splitlines()[-1] if end.code else None
    return None


def _missing(program: str, words: Sequence[str]) -> str | None:
    """Return what a part of a command line names and the program's help does not."""
    names = _command_of(program, [word for word in words if not OPTION.match(word)])
    options = [word.partition("=")[0] for word in words if OPTION.match(word)]
    if not words:
        return None
    help_text = _help(program, tuple(names))
    if help_text is None:
        return f"{program} has no command {' '.join(names)}"
    known = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", help_text))
    unknown = [option for option in options if option not in known]
    return f"{program} {' '.join(names)} has no {unknown[0]}" if unknown else None


def _command_of(program: str, words: Sequence[str]) -> Sequence[str]:
    """Return the words that name the command: two where the first is a noun."""
    return words[: 2 if words and words[0] in PROGRAMS[program].nouns else 1]


@cache
def _help(program: str, names: tuple[str, ...]) -> str | None:
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            PROGRAMS[program].parse([*names, "--help"])
    except SystemExit as end:
        return None if end.code else said.getvalue()
    return None


def _make_complaint(words: Sequence[str]) -> str | None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    known = {used["name"] for used in USED.finditer(makefile)}
    for word in words:
        variable = VARIABLE.match(word)
        if variable is None and word not in targets:
            return f"the Makefile has no target {word}"
        if variable is not None and variable["name"] not in known:
            return f"the Makefile knows no {variable['name']}"
    return None


def _module_complaint(words: Sequence[str]) -> str | None:
    if words[:1] != ["-m"] or len(words) < 2:
        return None
    path = ROOT.joinpath(*words[1].split("."))
    is_there = path.with_suffix(".py").exists() or (path / "__main__.py").exists()
    return None if is_there else f"there is no module {words[1]}"
