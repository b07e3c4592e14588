"""A command that prints a token, prints rubbish, fails, hangs, or is not there."""

import json
import sys
import time
from pathlib import Path

import pytest

from runtime.tokens.token_command import TokenCommand
from runtime.tokens.token_file import TokenFile
from wire.net.errors import TokenUnavailable
from wire.net.security import Token

KEY = "clusters.dc1.sasl.token_command"
SECRET = "s3cret-t0ken"  # noqa: S105 - of a test


def command(*words: str, deadline_s: float = 30.0) -> TokenCommand:
    return TokenCommand(key=KEY, command=words, deadline_s=deadline_s)


def complaint(source: TokenCommand | TokenFile) -> str:
    with pytest.raises(TokenUnavailable) as caught:
        source.token()
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(source)
    return str(caught.value)


def test_a_printed_token_is_taken_and_the_command_run_once_for_all() -> None:
    source = command("/bin/sh", "-c", "printf token-$$")
    first = source.token()
    assert first.text.startswith("token-")
    assert source.token() is first
    source.forget(first)
    assert source.token() != first


def test_a_printed_object_says_when_the_token_ends() -> None:
    printed = json.dumps({"access_token": "x.y", "expires_in": 900})
    before_ms = int(time.time_ns() / 1e6)
    ends_ms = command("/bin/echo", printed).token().expires_at_ms
    assert ends_ms is not None
    assert 0 <= ends_ms - before_ms - 900_000 < 60_000


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (f"echo {SECRET}; echo {SECRET} >&2; exit 3", "ended with status 3; run it by hand"),
        (f"echo {SECRET}; kill -9 $$", "was ended by signal 9"),
        (f"echo '<html>{SECRET}</html>'", "is no bearer token"),
        ("true", "holds no token"),
        ("cat /dev/zero", "printed more than 131072 bytes"),
    ],
)
def test_what_fails_is_named_by_key_and_command_without_what_it_printed(
    script: str, said: str
) -> None:
    assert complaint(command("/bin/sh", "-c", script)).startswith(f"{KEY}: /bin/sh: {said}")


def test_a_command_that_is_not_there_is_named() -> None:
    assert complaint(command("/no/such/command", SECRET)) == (
        f"{KEY}: /no/such/command: cannot be run: No such file or directory"
    )


@pytest.mark.parametrize("and_then", ["wait", "exit 0"])
def test_a_command_that_hangs_is_killed_with_all_that_it_started(
    tmp_path: Path, and_then: str
) -> None:
    """Where the shell itself ends, what it leaves behind holds the pipe."""
    pid_file = tmp_path / "pid"
    script = f"sleep 1000 & echo $! > {pid_file}; {and_then}"
    assert complaint(command("/bin/sh", "-c", script, deadline_s=1.0)) == (
        f"{KEY}: /bin/sh: did not end within 1 s, and was killed"
    )
    state = Path(f"/proc/{pid_file.read_text().strip()}/stat")
    deadline = time.monotonic() + 30
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, "it lives on"


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    source = TokenFile(key="sasl.token_file", file=file)
    assert complaint(source) == f"sasl.token_file: {file}: No such file or directory"
    for text in ("first", "second"):
        file.write_text(f"{text}\n")
        assert source.token() == Token(text=text)
    file.write_text(f"{SECRET} {SECRET}")
    assert complaint(source).startswith(f"sasl.token_file: {file}: is no bearer token")
    file.write_bytes(b"x" * 200_000)
    assert complaint(source).endswith("is larger than 131072 bytes")


def test_a_command_reads_nothing_of_ours() -> None:
    script = "import sys; print('empty' if not sys.stdin.read() else 'more')"
    assert command(sys.executable, "-c", script).token().text == "empty"
