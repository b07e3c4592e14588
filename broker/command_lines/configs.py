"""`broker configs`."""

from typing import Final

from broker.command_lines.shared import CLUSTER, DRY_RUN, LOOKS, STATUSES
from runtime.program.command import Act, Command, Option, Word

KIND: Final = Word(
    name="kind",
    metavar="KIND",
    help="topic, broker, group or client-metrics",
    choices=("topic", "broker", "group", "client-metrics"),
)
NAME: Final = Word(
    name="name",
    metavar="NAME",
    help="the topic, the group, or the broker's id; `default` for all brokers",
)


def _describe() -> Act:
    from broker.commands.configs import describe

    return describe


def _set() -> Act:
    from broker.commands.configs import set_configs

    return set_configs


def _unset() -> Act:
    from broker.commands.configs import unset_configs

    return unset_configs


COMMANDS: Final = (
    Command(
        name="configs describe",
        help="Show what is set for a topic or a broker while the cluster runs.",
        details="JSON also has what each setting is made of, and its documentation.",
        load=_describe,
        examples=(
            "broker configs describe topic orders",
            "broker configs describe broker 0 --all",
            "broker configs describe broker default --json",
            "broker configs describe topic orders --key retention.ms",
        ),
        words=(KIND, NAME),
        options=(
            *LOOKS,
            Option(names=("--all",), help="show files' settings and defaults, too"),
            Option(
                names=("--key",),
                metavar="KEY",
                help="only this setting; the option may be repeated",
                is_repeated=True,
            ),
        ),
        statuses=STATUSES,
    ),
    Command(
        name="configs set",
        help="Set settings of a topic or a broker while the cluster runs.",
        load=_set,
        examples=(
            "broker configs set topic orders retention.ms=3600000 cleanup.policy=compact",
            "broker configs set broker default log.retention.ms=3600000 --dry-run",
        ),
        words=(
            KIND,
            NAME,
            Word(
                name="settings",
                metavar="KEY=VALUE",
                help="one setting or several; the others stay",
                is_repeated=True,
            ),
        ),
        options=(*CLUSTER, DRY_RUN),
        statuses=STATUSES,
    ),
    Command(
        name="configs unset",
        help="Take settings of a topic or a broker back, so that more general ones count.",
        load=_unset,
        examples=("broker configs unset topic orders retention.ms",),
        words=(
            KIND,
            NAME,
            Word(name="keys", metavar="KEY", help="one setting or several", is_repeated=True),
        ),
        options=(*CLUSTER, DRY_RUN),
        statuses=STATUSES,
    ),
)
