"""The program `spark-audit`. Exit status: 0 clean, 1 findings, 2 could not tell."""

import argparse
import json
import logging
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import trio

from runtime.config import ConfigurationError, load
from runtime.logs import configure
from runtime.metrics import AddressInUse
from runtime.output import PIPE_CLOSED, print_nowhere
from spark_audit.result.exporter import serve
from spark_audit.result.report import long_report, short_report
from spark_audit.result.store import Result, ResultUnusable
from spark_audit.result.verdict import Answer, Verdict, decode
from spark_audit.run import run_audit

BAD_INPUT: Final = Answer.UNKNOWN.exit_status


def run(options: argparse.Namespace) -> int:
    """Audit now, store the result and print the short report."""
    configuration = load(options.file)
    output = options.output or configuration.audit.output
    verdict = run_audit(configuration, options.topics, output)
    if options.json:
        _show([Result(output).verdict_text()])
    elif verdict.flows:
        _show([*short_report(verdict), f"result: {output}"])
    return _finish(verdict)


def report(options: argparse.Namespace) -> int:
    """Print a stored result, with every finding."""
    result = Result(options.folder)
    verdict = _stored(result)
    if options.json:
        findings = list(result.findings())
        _show([json.dumps({**json.loads(result.verdict_text()), "findings": findings})])
    else:
        _show(long_report(verdict, result.findings()))
    return _finish(verdict)


def serve_metrics(options: argparse.Namespace) -> int:
    """Serve the last stored verdict as metrics until SIGTERM."""
    configuration = load(options.file)
    trio.run(serve, configuration)
    return 0


def _stored(result: Result) -> Verdict:
    try:
        return decode(result.verdict_text())
    except ValueError as error:
        raise ResultUnusable(f"{result.folder}: {error}") from error


def _finish(verdict: Verdict) -> int:
    if verdict.answer is Answer.UNKNOWN:
        _complain(f"could not tell: {verdict.problem}")
    return verdict.answer.exit_status


def _show(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _complain(line: str) -> None:
    sys.stderr.write(f"spark-audit: {line}\n")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options; argparse itself ends the program with status 2 on bad ones."""
    parser = argparse.ArgumentParser(prog="spark-audit", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=command.__doc__, description=command.__doc__)
        sub.set_defaults(command=command)
        return sub

    running = add("run", run)
    running.add_argument("file", type=Path, help="the YAML file that all programs read")
    running.add_argument("--output", type=Path, help="result folder (default: audit.output)")
    running.add_argument(
        "--topic",
        action="append",
        default=[],
        dest="topics",
        metavar="TOPIC",
        help="only this topic; may be repeated",
    )
    running.add_argument("--json", action="store_true", help="print verdict.json")
    reporting = add("report", report)
    reporting.add_argument("folder", type=Path, help="a result folder")
    reporting.add_argument("--json", action="store_true", help="verdict.json and all findings")
    add("metrics", serve_metrics).add_argument("file", type=Path, help="the YAML file")
    return parser.parse_args(arguments)


def quieten_py4j() -> None:
    """Keep what py4j announces at INFO, and what goes on by itself, out of our log.

    Each closed connection, under its own name; and, as nobody's (`logging.info`), that it sends a
    command again over a new connection because the pooled one was closed.
    """
    logging.getLogger("py4j").setLevel(logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.addFilter(lambda record: record.name != "root" or record.levelno > logging.INFO)


def main(arguments: list[str] | None = None) -> int:
    """Run the program and return its exit status."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    configure("spark-audit")
    quieten_py4j()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Unwinding ends the JVM and removes its files; the default would leave both behind.
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        status: int = options.command(options)
    except (ConfigurationError, ResultUnusable, AddressInUse) as problem:
        _complain(str(problem))
        return BAD_INPUT
    except BrokenPipeError:
        print_nowhere()
        return PIPE_CLOSED
    return status


if __name__ == "__main__":
    sys.exit(main())
