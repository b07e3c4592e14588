"""`broker topics`."""

from typing import Final

from broker.command_lines.shared import CLUSTER, DRY_RUN, LOOKS, STATUSES, YES, whole
from runtime.program.command import Act, Command, Option, Word

TOPIC: Final = Word(name="topic", metavar="TOPIC", help="the topic's name")
TOPICS: Final = Word(name="topics", metavar="TOPIC", help="one topic or several", is_repeated=True)


def _list() -> Act:
    from broker.commands.topics import list_topics

    return list_topics


def _describe() -> Act:
    from broker.commands.topics import describe_topics

    return describe_topics


def _create() -> Act:
    from broker.commands.topics import create

    return create


def _alter() -> Act:
    from broker.commands.topics import alter

    return alter


def _delete() -> Act:
    from broker.commands.topics import delete

    return delete


COMMANDS: Final = (
    Command(
        name="topics list",
        help="List the topics of a cluster.",
        load=_list,
        examples=(
            "broker topics list",
            "broker topics list --site dc1 --unhealthy",
            "broker topics list --bootstrap kafka-1:9092,kafka-2:9092 --json",
        ),
        options=(
            *LOOKS,
            Option(
                names=("--unhealthy",),
                help="only those with partitions that lack replicas or a leader",
            ),
        ),
        statuses=STATUSES,
    ),
    Command(
        name="topics describe",
        help="Show the partitions of topics, their offsets, and the settings they have of their "
        "own.",
        load=_describe,
        examples=("broker topics describe orders", "broker topics describe orders parcels --json"),
        words=(TOPICS,),
        options=LOOKS,
        statuses=STATUSES,
    ),
    Command(
        name="topics create",
        help="Create a topic.",
        load=_create,
        examples=(
            "broker topics create orders --partitions 12",
            "broker topics create orders --replicas 3 --set retention.ms=3600000 --dry-run",
            "broker topics create orders --if-not-exists --site dc1",
        ),
        words=(TOPIC,),
        options=(
            *CLUSTER,
            Option(
                names=("--partitions",),
                metavar="N",
                help="how many partitions (default: as the brokers are set)",
                convert=whole(1),
            ),
            Option(
                names=("--replicas",),
                metavar="N",
                help="how many replicas of each (default: as the brokers are set)",
                convert=whole(1, 32_767),
            ),
            Option(
                names=("--set",),
                metavar="KEY=VALUE",
                help="a setting of the topic's own; the option may be repeated",
                is_repeated=True,
            ),
            Option(names=("--if-not-exists",), help="be content with a topic that is there"),
            DRY_RUN,
        ),
        statuses=STATUSES,
    ),
    Command(
        name="topics alter",
        help="Give a topic more partitions.",
        details="Records with keys go to other partitions from then on.",
        load=_alter,
        examples=("broker topics alter orders 24", "broker topics alter orders 24 --dry-run"),
        words=(
            TOPIC,
            Word(
                name="partitions",
                metavar="PARTITIONS",
                help="how many partitions in all",
                convert=whole(1),
            ),
        ),
        options=(*CLUSTER, DRY_RUN),
        statuses=STATUSES,
    ),
    Command(
        name="topics delete",
        help="Delete topics with all their records.",
        load=_delete,
        examples=("broker topics delete orders", "broker topics delete orders parcels --yes"),
        words=(TOPICS,),
        options=(*CLUSTER, YES),
        statuses=STATUSES,
    ),
)
