"""The command line of `mirror`: what there is to type, and what each command loads and calls."""

import sys
from argparse import ArgumentTypeError
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Final

from runtime.process.output import print_line
from runtime.program.command import Act, Command, Completes, Option, Options, Word
from runtime.program.program import ExitStatus, Faults, Program

MAX_WORKERS: Final = 64
PROGRAMS: Final = ("mirror", "failover", "spark-audit", "failover.client")
WITNESS: Final = "127.0.0.1:2181"

JSON: Final = Option(names=("--json",), help="print JSON instead of text")
FLOW_OPTION: Final = Option(
    names=("--flow",),
    metavar="SOURCE->TARGET",
    help="the flow that is meant; needed where the file has several",
)
FLOW: Final = Word(name="flow", metavar="FLOW", help="the flow, written as dc1-dc2")
SCOPE: Final = Word(
    name="scope",
    metavar="TOPIC[:PARTITION]",
    help="a topic or one partition of it (default: the whole flow)",
    is_optional=True,
)
WRITE: Final = Option(
    names=("--write",), help="write what was found; without it the command only shows it"
)


def _run() -> Act:
    from mirror.daemon import run_daemon
    from mirror.supervisor import as_worker, supervise

    async def run(options: Options) -> int:
        if options.workers > 1:
            return await supervise(
                options.configuration, options.workers, is_verbose=options.verbose
            )
        await run_daemon(as_worker(options.configuration, options.worker_number))
        return ExitStatus.DONE

    return run


def _status() -> Act:
    from mirror.commands.status_page import show_status

    return lambda options: show_status(
        options.configuration, is_watched=options.watch, as_json=options.json
    )


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
            as_json=options.json,
        ):
            print_line(line)
        return ExitStatus.DONE

    return show


def _pause() -> Act:
    from mirror.commands.orders import pause
    from mirror.state.orders import Scope

    return lambda options: _show_line(
        pause(options.configuration, options.flow, Scope.parse(options.scope))
    )


def _resume() -> Act:
    from mirror.commands.orders import resume
    from mirror.state.orders import Scope

    return lambda options: _show_line(
        resume(options.configuration, options.flow, Scope.parse(options.scope))
    )


def _restart() -> Act:
    from mirror.commands.orders import restart
    from mirror.state.orders import How, Scope

    def order(options: Options) -> Awaitable[int]:
        chosen = {
            How.SKIP: options.skip,
            How.QUARANTINE: options.quarantine,
            How.MERGE: options.merge,
            How.ANEW: options.from_earliest,
        }
        how = next((one for one, is_chosen in chosen.items() if is_chosen), How.RETRY)
        scope = Scope.parse(options.scope)
        return _show_line(restart(options.configuration, options.flow, scope, how))

    return order


def _offsets() -> Act:
    from mirror.commands.position_words import parse_offsets
    from mirror.commands.positions import Asked, offsets

    def ask(options: Options) -> Awaitable[int]:
        asked = Asked(flow=options.flow, as_json=options.json)
        return offsets(options.configuration, parse_offsets(options.words), asked)

    return ask


def _translate() -> Act:
    from mirror.commands.position_words import GroupName, parse_what
    from mirror.commands.positions import Asked, translate

    def ask(options: Options) -> Awaitable[int]:
        what = GroupName(options.what) if options.group else parse_what(options.what)
        asked = Asked(flow=options.flow, as_json=options.json, is_reverse=options.reverse)
        return translate(options.configuration, what, asked)

    return ask


def _rebuild_map() -> Act:
    from mirror.commands.rebuild_map import rebuild_map

    return lambda options: rebuild_map(options.configuration, options.flow, write=options.write)


def _refill() -> Act:
    from mirror.commands.refill import refill

    return lambda options: refill(options.configuration, options.site, write=options.write)


def _import_mm2() -> Act:
    from mirror.commands.import_mm2 import import_mm2

    return lambda options: import_mm2(
        options.properties, zookeeper=options.zookeeper, write=options.write
    )


def _take_over() -> Act:
    from mirror.commands.take_over import take_over

    return lambda options: take_over(
        options.configuration, options.flow, topic=options.offsets_topic, write=options.write
    )


def _faults() -> Faults:
    from mirror.commands.acls import NoPrincipal
    from mirror.commands.check import CheckFailed
    from mirror.commands.orders import OrderFailed
    from mirror.commands.position_words import PositionsUnreadable
    from mirror.commands.positions import CommandFailed
    from mirror.state.orders import OrderRefused
    from runtime.configuration.config import ConfigurationError
    from runtime.configuration.properties import ConfigurationError as PropertiesWrong
    from runtime.pages.metrics import AddressInUse

    return dict.fromkeys(
        (
            ConfigurationError,
            PropertiesWrong,
            AddressInUse,
            NoPrincipal,
            CheckFailed,
            CommandFailed,
            PositionsUnreadable,
            OrderFailed,
            OrderRefused,
        ),
        ExitStatus.BAD_INPUT,
    )


async def _show(page: Awaitable[str]) -> int:
    sys.stdout.write(await page)
    return ExitStatus.DONE


async def _show_line(line: Awaitable[str]) -> int:
    print_line(await line)
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
        help="Show every partition and every group.",
        load=_status,
        examples=("mirror status dc.yaml", "mirror status --watch", "mirror status --json"),
        reads_configuration=True,
        options=(
            Option(names=("--watch",), help="show a new page every second, until Ctrl-C"),
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
            Option(names=("--json",), help="print JSON instead of commands"),
            FLOW_OPTION,
        ),
        statuses={
            ExitStatus.BAD_INPUT: "The input is bad, or a cluster's login names no user and "
            "--principal is not given."
        },
    ),
)
ORDERS: Final = (
    Command(
        name="pause",
        help="Stop mirroring a flow, a topic or a partition until `mirror resume`.",
        load=_pause,
        examples=(
            "mirror pause dc1-dc2",
            "mirror pause dc1-dc2 orders:3 dc.yaml",
            "mirror pause dc1-dc2 orders --config dc.yaml",
        ),
        words=(FLOW, SCOPE),
        reads_configuration=True,
    ),
    Command(
        name="resume",
        help="Resume a paused flow, topic or partition where it stood.",
        load=_resume,
        examples=("mirror resume dc1-dc2 orders:3 dc.yaml",),
        words=(FLOW, SCOPE),
        reads_configuration=True,
    ),
    Command(
        name="restart",
        help="Let a flow, topic or partition that has stopped try again once. The daemon does so "
        "now, or the next daemon when it starts.",
        load=_restart,
        examples=(
            "mirror restart dc1-dc2 orders:3 dc.yaml",
            "mirror restart dc1-dc2 orders dc.yaml --skip",
            "mirror restart dc2-dc1 orders dc.yaml --quarantine",
            "mirror restart --from-earliest dc1-dc2 orders dc.yaml",
        ),
        words=(FLOW, SCOPE),
        reads_configuration=True,
        options=(
            Option(
                names=("--skip",),
                group="how",
                help="leave out what cannot be mirrored, and count it",
            ),
            Option(
                names=("--quarantine",),
                group="how",
                help="of a diverged target: save what it alone has to TOPIC.diverged on both sites "
                "and to a file, and leave it out of the flow back",
            ),
            Option(
                names=("--merge",),
                group="how",
                help="of a diverged target: keep what it alone has, which the flow back appends "
                "late; the log says how many keys end with different values",
            ),
            Option(
                names=("--from-earliest",),
                group="how",
                help="delete the target's copy of the TOPIC and mirror the topic from its first "
                "record",
            ),
        ),
    ),
)
POSITIONS: Final = (
    Command(
        name="offsets",
        help="Show a group's positions on both sides, and what a switch would cost the group; "
        "or export and import translated positions.",
        load=_offsets,
        examples=(
            "mirror offsets billing dc.yaml",
            "mirror offsets export billing shipping --config dc.yaml",
            "mirror offsets import positions.csv dc.yaml",
        ),
        words=(
            Word(
                name="words",
                metavar="GROUP | export [GROUP ...] | import POSITIONS",
                help="GROUP shows a group (`show GROUP` if its name is export or import); export "
                "prints positions translated to the target as CSV: group,topic,partition,offset; "
                "import commits such a file on the target, for groups without members there",
                is_repeated=True,
            ),
        ),
        reads_configuration=True,
        options=(JSON, FLOW_OPTION),
        statuses={
            ExitStatus.FAILED: "A position could not be translated, or the target refused to "
            "commit one."
        },
    ),
    Command(
        name="translate",
        help="Show where a position lies on the other side.",
        load=_translate,
        examples=(
            "mirror translate orders:3:1742 dc.yaml",
            "mirror translate billing --json dc.yaml",
            "mirror translate --reverse orders:3:1742 dc.yaml",
        ),
        words=(
            Word(
                name="what",
                metavar="GROUP | TOPIC:PARTITION:OFFSET",
                help="all positions of a group, or one offset",
            ),
        ),
        reads_configuration=True,
        options=(
            Option(names=("--group",), help="take the word for a group, whatever it looks like"),
            Option(names=("--reverse",), help="translate from the target to the source"),
            JSON,
            FLOW_OPTION,
        ),
        statuses={ExitStatus.FAILED: "The position has no exact counterpart."},
    ),
)
REPAIRS: Final = (
    Command(
        name="rebuild-map",
        help="Rebuild the offset map from both logs after its topic was lost.",
        load=_rebuild_map,
        examples=("mirror rebuild-map dc.yaml", "mirror rebuild-map --write dc.yaml"),
        reads_configuration=True,
        options=(WRITE, FLOW_OPTION),
        statuses={ExitStatus.FAILED: "The map of a partition could not be found; it is named."},
    ),
    Command(
        name="refill",
        help="Prepare a site that came back without its records to be filled from the other one.",
        load=_refill,
        examples=("mirror refill dc1 dc.yaml", "mirror refill dc1 --write dc.yaml"),
        words=(Word(name="site", metavar="SITE", help="the cluster that is empty"),),
        reads_configuration=True,
        options=(
            Option(
                names=("--write",), help="do it; without it the command only shows what it would do"
            ),
        ),
    ),
    Command(
        name="import-mm2",
        help="Translate a MirrorMaker 2 properties file into our YAML, and name the settings that "
        "have no counterpart.",
        load=_import_mm2,
        examples=(
            "mirror import-mm2 mm2.properties",
            "mirror import-mm2 --write --zookeeper witness:2181 mm2.properties",
        ),
        words=(
            Word(
                name="properties",
                metavar="PROPERTIES",
                help="MirrorMaker's file",
                convert=Path,
                completes=Completes.FILE,
            ),
        ),
        options=(
            Option(
                names=("--zookeeper",),
                metavar="HOST:PORT",
                default=WITNESS,
                help="the witness",
            ),
            Option(names=("--write",), help="write PROPERTIES with the suffix .yaml"),
        ),
    ),
    Command(
        name="take-over",
        help="Continue where a stopped MirrorMaker 2 has left off: seed the offset map with its "
        "position.",
        load=_take_over,
        examples=("mirror take-over dc.yaml", "mirror take-over --write dc.yaml"),
        reads_configuration=True,
        options=(
            WRITE,
            Option(
                names=("--offsets-topic",),
                metavar="TOPIC",
                help="the offsets topic of MirrorMaker's Connect worker, if it is not the usual",
            ),
            FLOW_OPTION,
        ),
        statuses={ExitStatus.FAILED: "The map of a partition could not be found; it is named."},
    ),
)
PROGRAM: Final = Program(
    name="mirror",
    description="Copy topics and consumer positions from one Kafka cluster to another.",
    commands=(*RUNNING, *ORDERS, *POSITIONS, *REPAIRS),
    examples=(
        "mirror check dc.yaml",
        "mirror run dc.yaml",
        "mirror status --watch --config dc.yaml",
    ),
    statuses={
        ExitStatus.DONE: "The command did what it was asked.",
        ExitStatus.FAILED: "The command failed.",
        ExitStatus.BAD_INPUT: "The input is bad, or a cluster, the witness or a daemon that the "
        "command needs did not answer.",
    },
    faults=_faults,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    return PROGRAM.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
