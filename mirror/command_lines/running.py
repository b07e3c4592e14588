"""Commands that run the mirror, and that show what it does or would do."""

from argparse import ArgumentTypeError
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Final

from mirror.command_lines.shared import FLOW_OPTION
from runtime.process.output import print_line
from runtime.program.choosing import GROUP, LAG_OVER, LISTS_ALL, TOPIC
from runtime.program.command import Act, Command, Option, Options
from runtime.program.program import ExitStatus

if TYPE_CHECKING:  # tables are made when a command runs
    from runtime.program.page import Part

MAX_WORKERS: Final = 64
PROGRAMS: Final = ("mirror", "failover", "spark-audit", "failover.client")


def _run() -> Act:
    from mirror.daemon import run_daemon
    from mirror.supervisor import as_worker, supervise

    async def run(options: Options) -> int:
        if options.workers > 1:
            return await supervise(
                options.configuration, options.workers, options.log_flags.words()
            )
        await run_daemon(as_worker(options.configuration, options.worker_number))
        return ExitStatus.DONE

    return run


def _status() -> Act:
    from mirror.commands.status_choice import StatusChoice, states_named
    from mirror.commands.status_page import show_status

    def show(options: Options) -> Awaitable[int]:
        choice = StatusChoice(
            topic=options.topic,
            group=options.group,
            states=states_named(options.state),
            lag_over=options.lag_over,
            lists_all=options.all,
        )
        return show_status(
            options.configuration, choice, is_watched=options.watch, as_json=options.json
        )

    return show


def _check() -> Act:
    from mirror.commands.check import check

    async def show(options: Options) -> int:
        async for line in check(options.configuration):
            print_line(line)
        return ExitStatus.DONE

    return show


def _topics() -> Act:
    from mirror.commands.topics import topics

    return lambda options: _show(topics(options.configuration, options.flow, as_json=options.json))


def _acls() -> Act:
    from mirror.commands.acls import acls
    from runtime.rights.needed import By

    async def show(options: Options) -> int:
        program = None if options.program is None else By(options.program)
        for line in acls(
            options.configuration,
            options.flow,
            program=program,
            principal=options.principal,
            with_orders=options.orders,
            as_json=options.json,
        ):
            print_line(line)
        return ExitStatus.DONE

    return show


async def _show(page: "Awaitable[Iterable[Part]]") -> int:
    from runtime.program.page import show_page

    show_page(await page)
    return ExitStatus.DONE


def _program(text: str) -> str:
    """Return a program's name."""
    if text not in PROGRAMS:
        raise ArgumentTypeError(f"{text!r} is none of {', '.join(PROGRAMS)}")
    return text


def _count(text: str) -> int:
    """Return a number of workers."""
    try:
        count = int(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not a whole number") from error
    if not 1 <= count <= MAX_WORKERS:
        raise ArgumentTypeError(f"{count} is not between 1 and {MAX_WORKERS}")
    return count


RUNNING: Final = (
    Command(
        name="run",
        help="Run all flows of the file until a signal ends the daemon.",
        load=_run,
        has_json=False,
        examples=("mirror run dc.yaml", "mirror run --workers 4 --config dc.yaml"),
        reads_configuration=True,
        options=(
            Option(
                names=("--workers",),
                metavar="N",
                default=1,
                convert=_count,
                help="start N processes, which share the work among themselves and with the "
                "workers of other machines",
            ),
            Option(
                names=("--worker-number",),
                metavar="N",
                default=0,
                convert=int,
                is_hidden=True,
                help="the place among the workers of one machine",
            ),
        ),
    ),
    Command(
        name="status",
        help="Show partitions and groups, or, where they are many, topics and groups.",
        details="With more than 100 partitions each topic has one line, what needs somebody first. "
        "--json lists each partition and each position, of those that are chosen.",
        load=_status,
        examples=(
            "mirror status dc.yaml",
            "mirror status --watch",
            "mirror status --topic 'orders.*' --lag-over 1000",
            "mirror status --state 'retention overrun' --state failed --all",
            "mirror status --json",
        ),
        reads_configuration=True,
        options=(
            Option(names=("--watch",), help="show a new page every second, until Ctrl-C"),
            TOPIC,
            GROUP,
            Option(
                names=("--state",),
                metavar="STATE",
                is_repeated=True,
                help="show only partitions in this state, and groups' positions in them; the "
                "option may be repeated",
            ),
            LAG_OVER,
            LISTS_ALL,
            Option(names=("--json",), help="print JSON instead of a table"),
        ),
        statuses={
            ExitStatus.BAD_INPUT: "The input is bad, or a daemon, a cluster or the witness did not "
            "answer; what could be seen is shown."
        },
    ),
    Command(
        name="check",
        help="Connect to both clusters and the witness, and show what a run would do.",
        load=_check,
        examples=("mirror check dc.yaml",),
        reads_configuration=True,
        takes_set=True,
        statuses={
            ExitStatus.BAD_INPUT: "The input is bad, a cluster or the witness did not answer, or a "
            "run could not mirror or create a topic."
        },
    ),
    Command(
        name="topics",
        help="List the topics of each flow's source: the mirrored ones, and why the others are "
        "left out.",
        load=_topics,
        examples=("mirror topics dc.yaml", "mirror topics --json --flow 'dc1->dc2' dc.yaml"),
        reads_configuration=True,
        options=(Option(names=("--json",), help="print JSON instead of a table"), FLOW_OPTION),
    ),
    Command(
        name="acls",
        help="Print the commands that give the programs the rights that they need on both "
        "clusters. Nothing is asked and nothing is changed.",
        load=_acls,
        examples=(
            "mirror acls dc.yaml",
            "mirror acls --program failover --principal User:failover dc.yaml",
            "mirror acls --program mirror --orders dc.yaml",
            "mirror acls --json --flow 'dc1->dc2' dc.yaml",
        ),
        reads_configuration=True,
        options=(
            Option(
                names=("--program",),
                metavar="PROGRAM",
                convert=_program,
                help="mirror, failover, spark-audit or failover.client; without it all of them",
            ),
            Option(
                names=("--principal",),
                metavar="PRINCIPAL",
                help="who is given the rights; without it the user of each cluster's login",
            ),
            Option(
                names=("--orders",),
                help="also what `mirror restart --from-earliest`, `mirror restart --quarantine` "
                "and `mirror refill` need, which delete and make topics",
            ),
            Option(names=("--json",), help="print JSON instead of commands"),
            FLOW_OPTION,
        ),
        statuses={
            ExitStatus.BAD_INPUT: "The input is bad, or a cluster's login names no user and "
            "--principal is not given."
        },
    ),
)
