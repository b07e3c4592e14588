"""Commands that destroy something ask first: on a terminal, or by an option typed beforehand."""

import sys

from runtime.process.output import escaped
from runtime.program.program import BadInput


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
    sys.stderr.write(f"{escaped(question)} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise NotAgreed("nothing was changed")
