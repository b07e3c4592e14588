"""`broker users`."""

from pathlib import Path
from typing import Final

from broker.command_lines.shared import CLUSTER, LOOKS, STATUSES, YES, whole
from runtime.program.command import Act, Command, Completes, Option, Word

LEAST_ITERATIONS: Final = 4_096
MOST_ITERATIONS: Final = 16_384
"""Kafka's ScramMechanism."""
USER: Final = Word(name="user", metavar="USER", help="the user's name, without User:")


def _mechanism(text: str) -> str:
    name = text.upper()
    if name not in {"SCRAM-SHA-256", "SCRAM-SHA-512"}:
        raise ValueError(text)
    return name


def _list() -> Act:
    from broker.commands.users import list_users

    return list_users


def _add() -> Act:
    from broker.commands.users import add

    return add


def _remove() -> Act:
    from broker.commands.users import remove

    return remove


COMMANDS: Final = (
    Command(
        name="users list",
        help="List users whose passwords the brokers keep (SCRAM).",
        load=_list,
        examples=("broker users list", "broker users list alice bob --json"),
        words=(
            Word(
                name="users",
                metavar="USER",
                help="only these",
                is_optional=True,
                is_repeated=True,
            ),
        ),
        options=LOOKS,
        statuses=STATUSES,
    ),
    Command(
        name="users add",
        help="Let a user log in by a password (SCRAM), or give the user another one.",
        details="The password is asked for on a terminal; it leaves this program salted.",
        load=_add,
        examples=(
            "broker users add alice --site dc1",
            "broker users add alice --mechanism SCRAM-SHA-256 --password-file alice.secret",
        ),
        words=(USER,),
        options=(
            *CLUSTER,
            Option(
                names=("--mechanism",),
                metavar="NAME",
                help="SCRAM-SHA-256 or SCRAM-SHA-512",
                default="SCRAM-SHA-512",
                convert=_mechanism,
            ),
            Option(
                names=("--iterations",),
                metavar="N",
                help="how often the password is hashed",
                default=8_192,
                convert=whole(LEAST_ITERATIONS, MOST_ITERATIONS),
            ),
            Option(
                names=("--password-file",),
                metavar="FILE",
                help="a file with the password; - for standard input",
                convert=Path,
                completes=Completes.FILE,
            ),
        ),
        statuses=STATUSES,
    ),
    Command(
        name="users remove",
        help="Keep no password of a user any longer.",
        load=_remove,
        examples=(
            "broker users remove alice",
            "broker users remove alice --mechanism SCRAM-SHA-256 --yes",
        ),
        words=(USER,),
        options=(
            *CLUSTER,
            Option(
                names=("--mechanism",),
                metavar="NAME",
                help="only this one (default: all that the user has)",
                convert=_mechanism,
            ),
            YES,
        ),
        statuses=STATUSES,
    ),
)
