"""Who gave which command to a promotion, from where, and when: written into its journal.

It is a note for the morning after and no proof: whoever may write the witness may write it.
"""

import os
import pwd
import socket
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final, Self

from runtime.process.output import escaped
from runtime.untrusted_json import text, whole_number
from wire.values import frozen

MOST_KEPT: Final = 20
"""The first one and the last ones: a promotion that dies again and again gets many."""
BY_SERVE: Final = "failover serve:"
"""Stands before what `failover serve` does of itself about a promotion without a controller."""


@frozen
class GivenCommand:
    """One command; `what` is as it was typed, `user` has the person behind sudo too."""

    what: str
    user: str
    host: str
    at_ms: int

    def __str__(self) -> str:
        at = datetime.fromtimestamp(self.at_ms / 1_000, UTC).isoformat(timespec="seconds")
        return escaped(f"{self.what}, by {self.user} on {self.host} at {at}")

    def document(self) -> Mapping[str, object]:
        """Return the JSON form."""
        return asdict(self)

    @classmethod
    def of_document(cls, found: Mapping[str, Any]) -> Self:
        """Return what a JSON form says; raises ValueError, KeyError and TypeError."""
        return cls(
            what=text(found["what"]),
            user=text(found["user"]),
            host=text(found["host"]),
            at_ms=whole_number(found["at_ms"]),
        )


def given_here(what: str, at_ms: int) -> GivenCommand:
    """Return a command that is given to this process."""
    return GivenCommand(what=what, user=_user(), host=socket.gethostname(), at_ms=at_ms)


def kept(given: tuple[GivenCommand, ...], new: GivenCommand) -> tuple[GivenCommand, ...]:
    """Return the commands of a journal with one more."""
    if len(given) < MOST_KEPT:
        return (*given, new)
    return (given[0], *given[-(MOST_KEPT - 2) :], new)


def _user() -> str:
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # as in a container
        name = f"uid {uid}"
    behind = os.environ.get("SUDO_USER")
    return f"{behind} (as {name})" if behind and behind != name else name
