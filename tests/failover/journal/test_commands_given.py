"""Who is written down as having given a command."""

import os
import pwd
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.journal.commands_given import MOST_KEPT, GivenCommand, given_here, kept
from tests.failover.strategies import given_commands


@pytest.fixture(autouse=True)
def nobody_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_USER", raising=False)


def test_the_user_of_the_process_is_written_down() -> None:
    given = given_here("failover abort", 5)
    assert given.user == pwd.getpwuid(os.getuid()).pw_name
    assert (given.what, given.host, given.at_ms) == ("failover abort", socket.gethostname(), 5)


def test_the_person_behind_sudo_is_written_down_too(monkeypatch: pytest.MonkeyPatch) -> None:
    user = given_here("x", 0).user
    monkeypatch.setenv("SUDO_USER", "alice")
    assert given_here("x", 0).user == f"alice (as {user})"


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert given_here("x", 0).user == f"uid {os.getuid()}"


def test_a_line_says_what_who_where_and_when_and_nothing_that_a_terminal_obeys() -> None:
    command = GivenCommand(
        what="failover promote dc2 --force", user="al\x1b[2Jice", host="ops1", at_ms=1_000
    )
    assert str(command) == (
        "failover promote dc2 --force, by al\\x1b[2Jice on ops1 at 1970-01-01T00:00:01+00:00"
    )


@given(st.lists(given_commands(), min_size=1, max_size=3 * MOST_KEPT))
def test_the_first_and_the_last_commands_are_kept(commands: list[GivenCommand]) -> None:
    found: tuple[GivenCommand, ...] = ()
    for command in commands:
        found = kept(found, command)
    assert found[0] == commands[0]
    assert list(found[1:]) == commands[1:][-(MOST_KEPT - 1) :]
