"""The standard streams, whose readers may go away before all is said, as `| head` does."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Any, Final, TextIO, cast

from wire.values import frozen


def print_nowhere() -> None:
    """Drop what is still to be printed, also what the interpreter itself prints when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def open_missing_streams() -> None:
    """Open what the caller has closed: Python has no object for it, a socket takes its number."""
    nowhere = Path(os.devnull)
    if sys.stdout is None:
        sys.stdout = nowhere.open("w")
    if sys.stderr is None:
        sys.stderr = nowhere.open("w")


class OutputFailed(OSError):
    """Standard output took no more, as on a full disk (a closed pipe is a BrokenPipeError)."""


@frozen(kw_only=False)
class _Output:
    """Standard output, whose errors differ from those of files and sockets."""

    stream: TextIO

    def write(self, text: str) -> int:
        try:
            return self.stream.write(text)
        except BrokenPipeError:
            raise
        except OSError as fault:
            raise OutputFailed(fault.errno, fault.strerror) from fault

    def flush(self) -> None:
        try:
            self.stream.flush()
        except BrokenPipeError:
            raise
        except OSError as fault:
            raise OutputFailed(fault.errno, fault.strerror) from fault

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self.stream, name)


@contextmanager
def output_that_names_its_faults() -> Iterator[None]:
    """Have standard output raise OutputFailed within the block."""
    stream = sys.stdout
    sys.stdout = cast("TextIO", _Output(stream))
    try:
        yield
    finally:
        sys.stdout = stream


DUMB: Final = frozenset({"dumb", "unknown"})
"""The terminals, as $TERM has them, that cannot move their cursor."""


def is_terminal(stream: TextIO | None = None) -> bool:
    """Tell whether a stream, standard output, is a terminal that can do more than print lines."""
    return (stream or sys.stdout).isatty() and os.environ.get("TERM", "").lower() not in DUMB


@contextmanager
def lines_as_json(command: str) -> Iterator[None]:
    """Print the lines that a command prints within the block as one JSON document behind it.

    What a command has said before it failed is there, too.
    """
    stream, said = sys.stdout, StringIO()
    sys.stdout = said
    try:
        yield
    finally:
        sys.stdout = stream
        import json  # a tenth of what --help takes

        document = {"command": command, "lines": said.getvalue().splitlines()}
        stream.write(f"{json.dumps(document)}\n")


def print_line(line: str) -> None:
    """Print one line on standard output; names from outside in it stay within the line."""
    sys.stdout.write(f"{escaped(line)}\n")


def complain(program: str, message: str) -> None:
    """Say on standard error what went wrong, in one line, if anybody listens."""
    with suppress(OSError):
        sys.stderr.write(f"{program}: {escaped(message)}\n")
        sys.stderr.flush()


def escaped(text: str) -> str:
    """Return a text in one line, whatever a name from outside in it may hold."""
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )
