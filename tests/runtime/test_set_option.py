"""Every message that tells of a command which takes `--set` leaves room for the set in it.

Held against the sources: what stands in backticks, or in a page's `<code>`, and begins with such a
command has to have `set_option` in it, before it ends. A table in a reference page is of no set.
"""

import ast
from functools import cache
from typing import Final

import pytest

from runtime.set_option import set_option
from tests.runtime.advised import HTML_CODE, PROGRAMS, THE_SET, sources, texts, told

OF_THE_PAST: Final = {"somebody has paused it with `mirror pause`"}
"""Says what somebody has done, and is no command to run."""


@cache
def taking_a_set() -> frozenset[str]:
    """Return the commands that take `--set`, as they are typed."""
    return frozenset(
        f"{program.name} {command.name}"
        for program in PROGRAMS
        for command in program.commands
        if any("--set" in option.names for option in command.all_options)
    )


def lacking(text: str) -> list[str]:
    """Return the commands in a text that take a set and leave no room for it."""
    quoted = text.split("`")[1::2] + HTML_CODE.findall(text)
    wanted = taking_a_set()
    return [
        one
        for one in quoted
        if " ".join(one.replace(THE_SET, "").split()[:2]) in wanted and THE_SET not in one
    ]


def test_every_command_that_a_message_tells_of_has_room_for_its_set() -> None:
    assert {"failover promote", "failover divergence", "mirror restart"} <= taking_a_set()
    found = {
        f"{name}: `{one}`"
        for name, text in told()
        if text not in OF_THE_PAST
        for one in lacking(text)
    }
    assert not found


@pytest.mark.parametrize(
    ("module", "found"),
    [
        ("x = f'run `failover abort{set_option(name)}`'", []),
        ("x = 'run `failover abort{of_set}`'", []),
        (
            "x = f'run `failover abort{of_set}`, then `mirror restart {flow}`'",
            ["mirror restart {}"],
        ),
        ("x = 'go on with `failover promote dc2`'", ["failover promote dc2"]),
        ("x = ('or `failover '\n'abort`')", ["failover abort"]),
        ("x = 'run <code>failover abort</code>'", ["failover abort"]),
        ("x = 'see `failover status` and `mirror run`'", []),
        ("def f():\n    'What `failover abort` does.'", []),
    ],
)
def test_a_command_without_room_for_its_set_is_found(module: str, found: list[str]) -> None:
    assert [one for text in texts(ast.parse(module)) for one in lacking(text)] == found


def test_the_option_is_there_in_a_file_with_sets_alone() -> None:
    assert set_option("payments") == " --set payments"
    assert set_option(None) == ""


def test_no_node_that_recover_restores_is_read_without_its_set() -> None:
    """The remedy of a garbled node is `failover recover`, which takes the set."""
    kinds = ("ActiveSite", "Pair", "EvidenceNumber")
    found = {
        f"{name}:{node.lineno}"
        for name, module in sources()
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {f"{kind}.decode" for kind in kinds}
        and not any(one.arg == "topic_set" for one in node.keywords)
    }
    assert not found
