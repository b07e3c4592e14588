"""The program `mirror`. Exit status: 0 well, 1 it failed, 2 bad input or nobody to ask."""

import argparse
import json
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import trio

from mirror.commands.check import CheckFailed, check
from mirror.commands.import_mm2 import import_mm2
from mirror.commands.orders import OrderFailed, pause, restart, resume
from mirror.commands.position_words import GroupName, PositionsUnreadable, parse_offsets, parse_what
from mirror.commands.positions import Asked, LookFailed, offsets, translate
from mirror.commands.rebuild_map import rebuild_map
from mirror.commands.refill import refill
from mirror.commands.status import collect, not_seen
from mirror.commands.status_table import render
from mirror.commands.take_over import take_over
from mirror.commands.topics import topics
from mirror.daemon import run_daemon
from mirror.report.status import StatusReport
from mirror.state.orders import How, OrderRefused, Scope
from mirror.supervisor import as_worker, supervise
from runtime.config import Configuration, ConfigurationError, load
from runtime.logs import configure
from runtime.metrics import AddressInUse
from runtime.output import PIPE_CLOSED, print_nowhere
from runtime.properties import ConfigurationError as PropertiesWrong

WATCH_S: Final = 1.0
CLEAR_SCREEN: Final = "\x1b[2J\x1b[H"
MAX_WORKERS: Final = 64
BAD_INPUT: Final = 2
WITNESS: Final = "127.0.0.1:2181"
INTERRUPTED: Final = 130
BAD_INPUTS: Final = (
    ConfigurationError,
    PropertiesWrong,
    AddressInUse,
    CheckFailed,
    LookFailed,
    PositionsUnreadable,
    OrderFailed,
    OrderRefused,
)
RESTARTS: Final = (
    ("--skip", How.SKIP, "go on behind what cannot be mirrored: it is left out, and counted"),
    (
        "--from-earliest",
        How.ANEW,
        "delete the target's copy of the TOPIC and mirror it from its first record",
    ),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser().parse_args(_flags_first(given))
    configure("mirror", verbose=options.verbose)
    sys.exit(_run(options))


def _flags_first(arguments: Sequence[str]) -> Sequence[str]:
    """Move the flags of commands with optional words before these.

    argparse takes the last word before a flag for FILE otherwise.
    """
    command = next((word for word in arguments if not word.startswith("-")), "")
    if command not in {"restart", "offsets"}:
        return arguments
    place = arguments.index(command) + 1
    flags: list[str] = []
    words: list[str] = []
    for before, word in zip(arguments[place - 1 :], arguments[place:], strict=False):
        (flags if word.startswith("--") or before == "--flow" else words).append(word)
    return [*arguments[:place], *flags, *words]


def _run(options: argparse.Namespace) -> int:
    try:
        return_status = _obey(options)
        sys.stdout.flush()
    except* BAD_INPUTS as faults:
        for fault in _leaves(faults):
            sys.stderr.write(f"mirror: {fault}\n")
        return_status = BAD_INPUT
    except* KeyboardInterrupt:
        return_status = INTERRUPTED
    except* BrokenPipeError:
        print_nowhere()
        return_status = PIPE_CLOSED
    return return_status


def _obey(options: argparse.Namespace) -> int:
    if options.is_offline:
        return import_mm2(options.file, zookeeper=options.zookeeper, write=options.write)
    command: Callable[[Configuration, argparse.Namespace], Awaitable[int]] = options.command
    return trio.run(command, load(options.file), options, strict_exception_groups=True)


def _leaves(group: BaseExceptionGroup[Exception]) -> Sequence[BaseException]:
    """Return the exceptions that a group is made of."""
    leaves: list[BaseException] = []
    for one in group.exceptions:
        leaves += _leaves(one) if isinstance(one, BaseExceptionGroup) else [one]
    return leaves


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mirror", description="Copy topics and consumer positions from one cluster to another."
    )
    parser.add_argument("--verbose", action="store_true", help="log more")
    parser.set_defaults(is_offline=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command, text in (
        ("run", _daemon, "run all flows of the file until stopped"),
        ("status", _status, "show every partition and every group"),
        ("check", _check, "connect and say what a run would do"),
    ):
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument("file", type=Path, metavar="FILE", help="the YAML configuration")
        sub.set_defaults(command=command)
        if name == "status":
            sub.add_argument("--watch", action="store_true", help="show again every second")
            sub.add_argument("--json", action="store_true", help="JSON instead of a table")
        if name == "run":
            _add_workers(sub)
    text = "list the topics of each flow's source: what is mirrored, and why the others are not"
    sub = commands.add_parser("topics", help=text, description=text)
    sub.add_argument("--json", action="store_true", help="JSON instead of a table")
    sub.set_defaults(command=_topics)
    _add_common(sub)
    _add_order_commands(commands)
    _add_position_commands(commands)
    return parser


def _add_workers(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--workers",
        type=_count,
        default=1,
        metavar="N",
        help="processes that share the work; they share it with those of other machines, too",
    )
    sub.add_argument("--worker-number", type=int, default=0, help=argparse.SUPPRESS)


def _count(text: str) -> int:
    """Return a number of workers."""
    try:
        count = int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from error
    if not 1 <= count <= MAX_WORKERS:
        raise argparse.ArgumentTypeError(f"{count} is not between 1 and {MAX_WORKERS}")
    return count


def _add_order_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    for name, command, text in (
        ("pause", _pause, "stop mirroring a flow, a topic or a partition until it is resumed"),
        ("resume", _resume, "go on with what was paused, where it stood"),
        ("restart", _restart, "let what has stopped try again; once, now or when a daemon runs"),
    ):
        sub = commands.add_parser(name, help=text, description=text)
        if name == "restart":
            sub.set_defaults(how=How.RETRY)
            ways = sub.add_mutually_exclusive_group()
            for flag, how, meaning in RESTARTS:
                ways.add_argument(flag, dest="how", action="store_const", const=how, help=meaning)
        sub.add_argument("flow", metavar="FLOW", help="as dc1-dc2")
        sub.add_argument("scope", nargs="?", metavar="TOPIC[:PARTITION]", help="default: all of it")
        sub.add_argument("file", type=Path, metavar="FILE", help="the YAML configuration")
        sub.set_defaults(command=command)


def _add_position_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "show a group's positions on both sides, and what a switch would cost it"
    sub = commands.add_parser("offsets", help=text, description=text)
    sub.add_argument(
        "words",
        nargs="+",
        metavar="GROUP | export [GROUP ...] | import POSITIONS",
        help="a group to show (`show GROUP` if it is called export or import); export prints the "
        "positions translated to the target as CSV: group,topic,partition,offset; import commits "
        "such a file on the target, for groups without members there",
    )
    sub.add_argument("--json", action="store_true", help="JSON instead of text")
    sub.set_defaults(command=_offsets)
    _add_common(sub)
    text = "say where a position lies on the other side"
    sub = commands.add_parser("translate", help=text, description=text)
    sub.add_argument("what", metavar="GROUP | TOPIC:PARTITION:OFFSET")
    sub.add_argument("--group", action="store_true", help="it is a group, whatever it looks like")
    sub.add_argument("--reverse", action="store_true", help="from the target to the source")
    sub.add_argument("--json", action="store_true", help="JSON instead of text")
    sub.set_defaults(command=_translate)
    _add_common(sub)
    text = "find the offset map again from both logs when its topic is lost"
    sub = commands.add_parser("rebuild-map", help=text, description=text)
    sub.add_argument("--write", action="store_true", help="keep it; without this only say it")
    sub.set_defaults(command=_rebuild_map)
    _add_common(sub)
    text = "have a site that came back without its records filled from the other one"
    sub = commands.add_parser("refill", help=text, description=text)
    sub.add_argument("site", metavar="SITE", help="the cluster that is empty")
    sub.add_argument("file", type=Path, metavar="FILE", help="the YAML configuration")
    sub.add_argument("--write", action="store_true", help="do it; without this only say it")
    sub.set_defaults(command=_refill)
    _add_migration_commands(commands)


def _add_migration_commands(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    text = "say a MirrorMaker 2 properties file in our words; what has none is listed"
    sub = commands.add_parser("import-mm2", help=text, description=text)
    sub.add_argument("file", type=Path, metavar="PROPERTIES", help="MirrorMaker's file")
    sub.add_argument("--zookeeper", default=WITNESS, help=f"the witness (default: {WITNESS})")
    sub.add_argument("--write", action="store_true", help="write PROPERTIES' name with .yaml")
    sub.set_defaults(is_offline=True)
    text = "go on where a MirrorMaker 2 has stopped: seed the offset map with its position"
    sub = commands.add_parser("take-over", help=text, description=text)
    sub.add_argument("--write", action="store_true", help="keep it; without this only say it")
    sub.add_argument("--offsets-topic", metavar="TOPIC", help="of its Connect worker, if not usual")
    sub.set_defaults(command=_take_over)
    _add_common(sub)


def _add_common(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("file", type=Path, metavar="FILE", help="the YAML configuration")
    sub.add_argument("--flow", metavar="SOURCE->TARGET", help="which, if the file has several")


async def _offsets(configuration: Configuration, options: argparse.Namespace) -> int:
    asked = Asked(flow=options.flow, as_json=options.json)
    return await offsets(configuration, parse_offsets(options.words), asked)


async def _translate(configuration: Configuration, options: argparse.Namespace) -> int:
    what = GroupName(options.what) if options.group else parse_what(options.what)
    asked = Asked(flow=options.flow, as_json=options.json, is_reverse=options.reverse)
    return await translate(configuration, what, asked)


async def _rebuild_map(configuration: Configuration, options: argparse.Namespace) -> int:
    return await rebuild_map(configuration, options.flow, write=options.write)


async def _refill(configuration: Configuration, options: argparse.Namespace) -> int:
    return await refill(configuration, options.site, write=options.write)


async def _take_over(configuration: Configuration, options: argparse.Namespace) -> int:
    topic = options.offsets_topic
    return await take_over(configuration, options.flow, topic=topic, write=options.write)


async def _topics(configuration: Configuration, options: argparse.Namespace) -> int:
    sys.stdout.write(await topics(configuration, options.flow, as_json=options.json))
    return 0


async def _pause(configuration: Configuration, options: argparse.Namespace) -> int:
    return _tell(await pause(configuration, options.flow, Scope.parse(options.scope)))


async def _resume(configuration: Configuration, options: argparse.Namespace) -> int:
    return _tell(await resume(configuration, options.flow, Scope.parse(options.scope)))


async def _restart(configuration: Configuration, options: argparse.Namespace) -> int:
    scope = Scope.parse(options.scope)
    return _tell(await restart(configuration, options.flow, scope, options.how))


def _tell(line: str) -> int:
    sys.stdout.write(f"{line}\n")
    return 0


async def _daemon(configuration: Configuration, options: argparse.Namespace) -> int:
    if options.workers > 1:
        return await supervise(configuration, options.workers, is_verbose=options.verbose)
    await run_daemon(as_worker(configuration, options.worker_number))
    return 0


async def _status(configuration: Configuration, options: argparse.Namespace) -> int:
    if not options.watch:
        return _complain_of(not_seen(await _show_status(configuration, options)))
    # Not by KeyboardInterrupt, which may be raised, and lost, in the midst of anything.
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_watch_status, configuration, options)
            async for _ in signals:
                nursery.cancel_scope.cancel()
                break
    return 0


async def _watch_status(configuration: Configuration, options: argparse.Namespace) -> None:
    while True:
        await _show_status(configuration, options)
        await trio.sleep(WATCH_S)


async def _show_status(configuration: Configuration, options: argparse.Namespace) -> StatusReport:
    report = await collect(configuration)
    page = json.dumps(report) + "\n" if options.json else render(report)
    if options.watch and not options.json:
        page = CLEAR_SCREEN + page
    sys.stdout.write(page)
    sys.stdout.flush()
    return report


def _complain_of(faults: Sequence[str]) -> int:
    if not faults:
        return 0
    sys.stderr.write(f"mirror: could not see all: {'; '.join(faults)}\n")
    return BAD_INPUT


async def _check(configuration: Configuration, _: argparse.Namespace) -> int:
    async for line in check(configuration):
        sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    main()
