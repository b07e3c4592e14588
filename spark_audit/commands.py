"""What the commands of `spark-audit` do and print."""

import json
import sys
from collections.abc import Iterable

import trio

from runtime.command import Options
from runtime.output import complain, print_line
from runtime.program import ExitStatus
from runtime.starting import unwind_at_signals
from spark_audit.result.exporter import serve
from spark_audit.result.report import long_report, short_report
from spark_audit.result.store import Result, ResultUnusable
from spark_audit.result.verdict import Answer, Verdict, decode
from spark_audit.run import run_audit
from spark_audit.session import quieten_py4j


def run(options: Options) -> int:
    """Audit now, store the result and print the short report."""
    quieten_py4j()
    unwind_at_signals()  # unwinding ends the JVM and removes its files
    output = options.output or options.configuration.audit.output
    verdict = run_audit(options.configuration, options.topic, output)
    if options.json:
        print_lines(Result(output).verdict_text().splitlines())
    elif verdict.flows:
        print_lines([*short_report(verdict), f"result: {output}"])
    return _finish(verdict)


def report(options: Options) -> int:
    """Print a stored result, with every finding."""
    unwind_at_signals()
    result = Result(options.folder)
    verdict = _stored(result)
    if options.json:
        findings = list(result.findings())
        print_lines([json.dumps({**json.loads(result.verdict_text()), "findings": findings})])
    else:
        print_lines(long_report(verdict, result.findings()))
    return _finish(verdict)


def serve_metrics(options: Options) -> int:
    """Serve the last stored verdict as metrics until SIGTERM."""
    unwind_at_signals()
    trio.run(serve, options.configuration)
    return ExitStatus.DONE


def _stored(result: Result) -> Verdict:
    try:
        return decode(result.verdict_text())
    except ValueError as error:
        raise ResultUnusable(f"{result.folder}: {error}") from error


def _finish(verdict: Verdict) -> int:
    if verdict.answer is Answer.UNKNOWN:
        complain("spark-audit", f"could not tell: {verdict.problem}")
    return verdict.answer.exit_status


def print_lines(lines: Iterable[str]) -> None:
    """Print lines; a name from outside stays within its line."""
    for line in lines:
        print_line(line)
    sys.stdout.flush()
