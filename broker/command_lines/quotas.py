"""`broker quotas`."""

from typing import Final

from broker.command_lines.shared import CLUSTER, DRY_RUN, LOOKS, STATUSES
from runtime.program.command import Act, Command, Option, Word

WHOSE: Final = (
    Option(names=("--user",), metavar="NAME", group="user", help="the user, without User:"),
    Option(names=("--user-default",), group="user", help="users without a quota of their own"),
    Option(names=("--client-id",), metavar="NAME", group="client", help="the client id"),
    Option(
        names=("--client-id-default",),
        group="client",
        help="client ids without a quota of their own",
    ),
    Option(names=("--ip",), metavar="ADDRESS", group="ip", help="the client's address"),
    Option(names=("--ip-default",), group="ip", help="addresses without a quota of their own"),
)


def _list() -> Act:
    from broker.commands.quotas import list_quotas

    return list_quotas


def _set() -> Act:
    from broker.commands.quotas import set_quotas

    return set_quotas


def _unset() -> Act:
    from broker.commands.quotas import unset_quotas

    return unset_quotas


COMMANDS: Final = (
    Command(
        name="quotas list",
        help="List quotas of users, client ids and addresses.",
        load=_list,
        examples=("broker quotas list", "broker quotas list --user alice --json"),
        options=(*LOOKS, *WHOSE),
        statuses=STATUSES,
    ),
    Command(
        name="quotas set",
        help="Set quotas.",
        load=_set,
        examples=(
            "broker quotas set --user alice producer_byte_rate=1000000",
            "broker quotas set --user alice --client-id-default consumer_byte_rate=2e6",
            "broker quotas set --ip 10.0.0.7 connection_creation_rate=20 --dry-run",
        ),
        words=(
            Word(
                name="quotas",
                metavar="QUOTA=VALUE",
                help="producer_byte_rate, consumer_byte_rate, request_percentage, "
                "controller_mutation_rate; of an address connection_creation_rate",
                is_repeated=True,
            ),
        ),
        options=(*CLUSTER, *WHOSE, DRY_RUN),
        statuses=STATUSES,
    ),
    Command(
        name="quotas unset",
        help="Take quotas away.",
        load=_unset,
        examples=("broker quotas unset --user alice producer_byte_rate",),
        words=(Word(name="quotas", metavar="QUOTA", help="one or several", is_repeated=True),),
        options=(*CLUSTER, *WHOSE, DRY_RUN),
        statuses=STATUSES,
    ),
)
