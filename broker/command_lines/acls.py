"""`broker acls`."""

import argparse
from typing import Final

from broker.command_lines.shared import CLUSTER, LOOKS, STATUSES, YES
from runtime.program.command import Act, Command, Option

OPERATIONS: Final = (
    "all",
    "read",
    "write",
    "create",
    "delete",
    "alter",
    "describe",
    "cluster-action",
    "describe-configs",
    "alter-configs",
    "idempotent-write",
    "create-tokens",
    "describe-tokens",
)


def _operation(text: str) -> str:
    word = text.lower().replace("_", "-")
    if word not in OPERATIONS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(OPERATIONS)}")
    return word


RESOURCES: Final = (
    Option(names=("--topic",), metavar="NAME", group="resource", help="a topic; * for all"),
    Option(names=("--group",), metavar="NAME", group="resource", help="a group; * for all"),
    Option(
        names=("--transactional-id",),
        metavar="NAME",
        group="resource",
        help="a transactional id; * for all",
    ),
    Option(
        names=("--user",), metavar="NAME", group="resource", help="a user, for delegation tokens"
    ),
    Option(names=("--cluster",), group="resource", help="the cluster itself"),
    Option(names=("--prefixed",), help="the name is the beginning of names"),
)
ENTRIES: Final = (
    Option(
        names=("--principal",),
        metavar="KIND:NAME",
        help="as User:alice; User:* is everybody",
        is_repeated=True,
    ),
    Option(names=("--host",), metavar="ADDRESS", help="the client's address", is_repeated=True),
    Option(
        names=("--operation",),
        metavar="OPERATION",
        help=f"one of {', '.join(OPERATIONS)}",
        convert=_operation,
        is_repeated=True,
    ),
)
MATCHING: Final = Option(
    names=("--matching",),
    help="also entries for prefixes of the name and for *: all that count for it",
)
FILTER: Final = (
    *RESOURCES,
    MATCHING,
    *ENTRIES,
    Option(names=("--deny",), help="only entries that deny"),
)


def _list() -> Act:
    from broker.commands.acls import list_acls

    return list_acls


def _add() -> Act:
    from broker.commands.acls import add

    return add


def _remove() -> Act:
    from broker.commands.acls import remove

    return remove


COMMANDS: Final = (
    Command(
        name="acls list",
        help="List entries of rights (ACLs), all or those that the options choose.",
        load=_list,
        examples=(
            "broker acls list",
            "broker acls list --topic orders --matching",
            "broker acls list --principal User:alice --site dc1 --json",
        ),
        options=(*LOOKS, *FILTER),
        statuses=STATUSES,
    ),
    Command(
        name="acls add",
        help="Add entries: each operation for each principal, from each host or from all.",
        load=_add,
        examples=(
            "broker acls add --topic orders --principal User:alice --operation read",
            "broker acls add --group app- --prefixed --principal User:app --operation all",
            "broker acls add --topic '*' --principal 'User:*' --operation write --deny",
        ),
        options=(
            *CLUSTER,
            *RESOURCES,
            *ENTRIES,
            Option(names=("--deny",), help="deny instead of allowing"),
        ),
        statuses=STATUSES,
    ),
    Command(
        name="acls remove",
        help="Remove the entries that the options choose; they are shown first.",
        load=_remove,
        examples=(
            "broker acls remove --topic orders --principal User:alice --operation read",
            "broker acls remove --principal User:alice --yes",
        ),
        options=(*CLUSTER, *FILTER, YES),
        statuses=STATUSES,
    ),
)
