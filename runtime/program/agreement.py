"""Commands that destroy something ask first: on a terminal, or by an option typed beforehand."""

import os
import sys
from typing import Final

import trio

from runtime.process.output import escaped
from runtime.program.program import BadInput

LONGEST_ANSWER: Final = 4_096
"""A line that a terminal gives at once."""


class NotAgreed(Exception):
    """The answer to the question was no; nothing was changed."""


def require_agreement(question: str, *, is_given: bool) -> None:
    """Return if the user wants it, which `is_given` says beforehand.

    Raises NotAgreed, and BadInput where there is no terminal on which to ask.
    """
    if is_given:
        return
    if not sys.stdin.isatty():
        raise BadInput(f"{question} Standard input is no terminal: say so with --yes")
    _ask(question)
    _require_yes(sys.stdin.readline())


def can_ask() -> bool:
    """Tell whether somebody sits at a terminal who can read a question and answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def wait_agreement(question: str) -> None:
    """Ask on the terminal, and return if the answer is yes; waiting for it can be cancelled.

    Raises NotAgreed.
    """
    terminal = sys.stdin.fileno()
    _ask(question)
    await trio.lowlevel.wait_readable(terminal)
    try:
        answer = os.read(terminal, LONGEST_ANSWER)
    except OSError:  # EIO: the terminal is gone, and nobody has said yes
        answer = b""
    _require_yes(answer.decode(errors="replace"))


def _ask(question: str) -> None:
    sys.stderr.write(f"{escaped(question)} [y/N] ")
    sys.stderr.flush()


def _require_yes(answer: str) -> None:
    if answer.strip().lower() not in {"y", "yes"}:
        raise NotAgreed("nothing was changed")
