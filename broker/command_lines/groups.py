"""`broker groups`."""

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
from runtime.program.choosing import GROUP as GROUP_PATTERN
from runtime.program.choosing import LAG_OVER
from runtime.program.choosing import TOPIC as TOPIC_PATTERN
from runtime.program.command import Act, Command, Option, Word
from runtime.program.program import ExitStatus

GROUP: Final = Word(name="group", metavar="GROUP", help="the group's name")
GROUPS: Final = Word(name="groups", metavar="GROUP", help="one group or several", is_repeated=True)
SCOPES: Final = Option(
    names=("--topic",),
    metavar="TOPIC[:PARTITION]",
    help="a topic or one partition of it; the option may be repeated (default: all that the group "
    "has positions of)",
    convert=read_by("parse_scope"),
    is_repeated=True,
)
RULES: Final = (
    Option(names=("--to-earliest",), group="rule", help="go on at the first record"),
    Option(names=("--to-latest",), group="rule", help="go on behind the last record"),
    Option(
        names=("--to-offset",),
        metavar="OFFSET",
        group="rule",
        help="go on at this offset, or at the nearest that the log has",
        convert=whole(0, MOST_64),
    ),
    Option(
        names=("--shift-by",),
        metavar="N",
        group="rule",
        help="go on N records later, or earlier with --shift-by=-N",
        convert=whole(-MOST_64, MOST_64),
    ),
    Option(
        names=("--to-datetime",),
        metavar="TIME",
        group="rule",
        help="go on at the first record that is not older, as 2026-05-01T12:00:00Z",
        convert=read_by("parse_time"),
    ),
    Option(
        names=("--by-duration",),
        metavar="TIME",
        group="rule",
        help="go on at the first record of the last 90s, 15m, 6h or 2d",
        convert=read_by("parse_duration"),
    ),
)


def _list() -> Act:
    from broker.commands.groups import show_groups

    return show_groups


def _describe() -> Act:
    from broker.commands.groups import describe

    return describe


def _reset() -> Act:
    from broker.commands.groups import reset_offsets

    return reset_offsets


def _delete() -> Act:
    from broker.commands.groups import delete

    return delete


def _delete_offsets() -> Act:
    from broker.commands.groups import delete_offsets

    return delete_offsets


COMMANDS: Final = (
    Command(
        name="groups list",
        help="List the groups of a cluster, of both protocols.",
        load=_list,
        examples=(
            "broker groups list",
            "broker groups list --group 'billing.*' --state Empty",
            "broker groups list --site dc1 --json",
        ),
        options=(
            *LOOKS,
            GROUP_PATTERN,
            Option(
                names=("--state",),
                metavar="STATE",
                help="show only groups in this state, as Stable or Empty",
            ),
        ),
        statuses=STATUSES,
    ),
    Command(
        name="groups describe",
        help="Show positions, lag and members of groups.",
        load=_describe,
        examples=(
            "broker groups describe billing",
            "broker groups describe billing --lag-over 1000",
            "broker groups describe billing --json",
        ),
        words=(GROUPS,),
        options=(*LOOKS, TOPIC_PATTERN, LAG_OVER),
        statuses=STATUSES,
    ),
    Command(
        name="groups reset-offsets",
        help="Move the positions of a group that has no members.",
        details="The moves are shown first.",
        load=_reset,
        examples=(
            "broker groups reset-offsets billing --to-earliest --dry-run",
            "broker groups reset-offsets billing --topic orders:3 --to-offset 1742",
            "broker groups reset-offsets billing --by-duration 6h --yes",
            "broker groups reset-offsets billing --shift-by=-100",
        ),
        words=(GROUP,),
        options=(
            *LOOKS,
            SCOPES,
            *RULES,
            Option(names=("--dry-run",), help="only show the moves"),
            YES,
        ),
        statuses={
            ExitStatus.FAILED: "The cluster did not answer or refused, the question was answered "
            "no, or a position could not be told; the table names it.",
        },
    ),
    Command(
        name="groups delete",
        help="Delete groups without members, with all their positions.",
        load=_delete,
        examples=("broker groups delete billing", "broker groups delete billing shipping --yes"),
        words=(GROUPS,),
        options=(*CLUSTER, YES),
        statuses=STATUSES,
    ),
    Command(
        name="groups delete-offsets",
        help="Forget a group's positions of topics that no member reads.",
        load=_delete_offsets,
        examples=(
            "broker groups delete-offsets billing --topic orders",
            "broker groups delete-offsets billing --topic orders:3 --yes",
        ),
        words=(GROUP,),
        options=(*CLUSTER, SCOPES, YES),
        statuses=STATUSES,
    ),
)
