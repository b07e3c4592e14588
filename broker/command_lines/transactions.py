"""`broker transactions`."""

from typing import Final

from broker.command_lines.shared import (
    CLUSTER,
    LOOKS,
    MOST_64,
    STATUSES,
    YES,
    read_by,
    whole,
)
from runtime.program.command import Act, Command, Option, Word
from runtime.program.program import ExitStatus

MOST_MINUTES: Final = 60 * 24 * 365
LONGEST_MINUTES: Final = 15
"""Kafka's default of `transaction.max.timeout.ms`."""


def _list() -> Act:
    from broker.commands.transactions import list_transactions

    return list_transactions


def _describe() -> Act:
    from broker.commands.transactions import describe

    return describe


def _find_hanging() -> Act:
    from broker.commands.transactions import find_hanging

    return find_hanging


def _abort() -> Act:
    from broker.commands.transactions import abort

    return abort


COMMANDS: Final = (
    Command(
        name="transactions list",
        help="List the transactional ids that the brokers coordinate.",
        load=_list,
        examples=(
            "broker transactions list",
            "broker transactions list --state Ongoing --site dc1 --json",
        ),
        options=(
            *LOOKS,
            Option(
                names=("--state",),
                metavar="STATE",
                help="only those in this state, as Ongoing; the option may be repeated",
                is_repeated=True,
            ),
        ),
        statuses=STATUSES,
    ),
    Command(
        name="transactions describe",
        help="Show one transaction as its coordinator knows it.",
        load=_describe,
        examples=("broker transactions describe billing-1",),
        words=(
            Word(
                name="transactional_id", metavar="TRANSACTIONAL-ID", help="the producer's setting"
            ),
        ),
        options=LOOKS,
        statuses=STATUSES,
    ),
    Command(
        name="transactions find-hanging",
        help="Find open transactions that nobody is going to end.",
        details="Each holds up the read-committed consumers of its partition.",
        load=_find_hanging,
        examples=(
            "broker transactions find-hanging",
            "broker transactions find-hanging --topic orders --max-transaction-minutes 60",
        ),
        options=(
            *LOOKS,
            Option(
                names=("--topic",),
                metavar="TOPIC",
                help="only this topic; the option may be repeated (default: all)",
                is_repeated=True,
            ),
            Option(
                names=("--max-transaction-minutes",),
                metavar="N",
                help="how long a transaction may take, as the brokers are set",
                default=LONGEST_MINUTES,
                convert=whole(0, MOST_MINUTES),
            ),
        ),
        statuses={
            ExitStatus.FAILED: "Transactions hang, or the cluster did not answer or refused; they "
            "are named."
        },
    ),
    Command(
        name="transactions abort",
        help="Abort a hanging transaction in one partition, past its coordinator.",
        load=_abort,
        examples=(
            "broker transactions abort orders:3 4012",
            "broker transactions abort orders:3 4012 --yes --site dc1",
        ),
        words=(
            Word(
                name="place",
                metavar="TOPIC:PARTITION",
                help="where it is open",
                convert=read_by("parse_scope"),
            ),
            Word(
                name="start_offset",
                metavar="START",
                help="the offset since which it is open, as find-hanging shows it",
                convert=whole(0, MOST_64),
            ),
        ),
        options=(*CLUSTER, YES),
        statuses=STATUSES,
    ),
)
