"""A command that a message tells of is one that its program takes as it is typed."""

import shlex
from collections.abc import Iterator

import pytest

from mirror.state.partition_state import keep_copy
from runtime.program.program import Program
from tests.mirror.building import CONFIG
from tests.runtime.advised import HTML_CODE, PROGRAMS, THE_SET, told

KNOWN = {program.name: program for program in PROGRAMS}
FILE = "dc.yaml"
ANYTHING = "1"
"""In the place of a site, a topic, an offset or a time that a message fills in."""


def advised() -> Iterator[str]:
    """Yield each command that some message tells of."""
    for _, text in told():
        for one in text.split("`")[1::2] + HTML_CODE.findall(text):
            if len(one.split()) > 1 and one.split()[0] in KNOWN:
                yield one.replace(THE_SET, " --set payments").replace("{}", ANYTHING)


def is_taken(command: str) -> bool:
    """Tell whether a program takes a command, behind which a reader may name the file."""
    program, *words = shlex.split(command)
    return _is_taken(KNOWN[program], words) or _is_taken(KNOWN[program], [*words, FILE])


def _is_taken(program: Program, words: list[str]) -> bool:
    try:
        program.parse(words)
    except SystemExit:
        return False
    return True


def test_every_command_that_a_message_tells_of_is_taken() -> None:
    commands = set(advised())
    assert len(commands) > 40
    assert not [one for one in sorted(commands) if not is_taken(one)]


@pytest.mark.parametrize(
    ("command", "taken"),
    [
        ("mirror restart dc1-dc2 orders:3 --quarantine", True),
        ("mirror restart dc1-dc2 orders --from-earliest --merge", False),
        ("failover promote dc2 --source-gone", False),
        ("failover demote dc2", False),
    ],
)
def test_a_command_that_nobody_takes_is_found(command: str, *, taken: bool) -> None:
    assert is_taken(command) is taken


def test_what_keeps_a_copy_is_taken() -> None:
    assert is_taken(keep_copy(CONFIG).split("`")[1])
