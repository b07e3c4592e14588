"""The commands of `spark-audit`: what each does and prints."""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Final

from runtime.process.clock import now_ms
from runtime.process.java import JavaMissing
from runtime.process.output import complain, print_line
from runtime.program.command import Options
from runtime.program.program import ExitStatus
from runtime.program.starting import unwind_at_signals
from spark_audit.archive import COMPILED, write_archive
from spark_audit.result.history import (
    change_between,
    change_document,
    change_lines,
    history_document,
    history_lines,
)
from spark_audit.result.page import MOST_NIGHTS, OLD_MS, html_page
from spark_audit.result.report import long_report, short_report
from spark_audit.result.store import Result, ResultUnusable
from spark_audit.result.verdict import Answer, Verdict, decode
from spark_audit.run import run_audit
from spark_audit.session import SparkCluster, SparkFailed, quieten_py4j
from spark_audit.site_digest import NightReport, take_night
from spark_audit.snapshot.seals import CannotTell

_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]*:/")


def run(options: Options) -> int:
    """Audit now, store the result and print the short report."""
    quieten_py4j()
    unwind_at_signals()  # unwinding ends the JVM and removes its files
    output = options.output or options.configuration.audit.output
    if options.output is not None and _ADDRESS.match(str(output)):
        raise ResultUnusable(f"--output {output}: no folder of this machine; see audit.results")
    cluster = _cluster(options)
    verdict = run_audit(
        options.configuration, options.topic, output, cluster, reads_all=options.full
    )
    if options.json:
        print_lines(Result(output).verdict_text().splitlines())
    elif verdict.flows:
        print_lines([*short_report(verdict), f"result: {output}"])
    return _finish(verdict)


def digest(options: Options) -> int:
    """Add a night to a site's evidence, and print what it found."""
    quieten_py4j()
    unwind_at_signals()
    try:
        report = take_night(
            options.configuration, options.site, _cluster(options), is_anew=options.full
        )
    except (CannotTell, JavaMissing, SparkFailed) as reason:
        complain("spark-audit", f"could not tell: {reason}")
        return ExitStatus.BAD_INPUT
    print_lines([json.dumps(asdict(report))] if options.json else night_report(report))
    return ExitStatus.BAD_INPUT if report.problems else ExitStatus.DONE


def night_report(report: NightReport) -> Iterator[str]:
    """Yield the lines after a night's digest."""
    yield (
        f"evidence of {report.site}, night {report.night}: {report.logs:,} logs, "
        f"{report.remembered:,} offsets remembered, {report.read_again:,} of them read again, "
        f"{report.new:,} new"
    )
    for why in report.begun:
        yield f"  remembered anew: {why}"
    for why in report.problems:
        yield f"  could not tell: {why}"


def _cluster(options: Options) -> SparkCluster:
    return SparkCluster(
        master=options.master or options.configuration.audit.master,
        settings=settings_of(options.conf or ()),
    )


class BadSetting(Exception):
    """A word behind --conf is no setting; one line."""


def settings_of(given: Iterable[str]) -> dict[str, str]:
    """Return Spark's settings as they are given on the command line; raises BadSetting."""
    settings: dict[str, str] = {}
    for one in given:
        name, is_set, value = one.partition("=")
        if not name or not is_set:
            raise BadSetting(f"--conf {one}: settings are given as spark.name=value")
        settings[name] = value
    return settings


def package(options: Options) -> int:
    """Write the archive with what Spark's workers import."""
    try:
        write_archive(options.archive)
    except OSError as error:
        raise ResultUnusable(f"{options.archive}: {error.strerror}") from error
    print_lines(
        [
            f"{options.archive}: give it to spark-submit with --py-files",
            f"where workers run, install for their Python: {', '.join(COMPILED)}",
        ]
    )
    return ExitStatus.DONE


def report(options: Options) -> int:
    """Print a stored result, with every finding."""
    unwind_at_signals()
    result = Result(options.folder)
    verdict = _stored(result)
    if verdict.flows:
        result.require_findings()
    _tell_age(verdict)
    if options.html is not None:
        page = html_page(
            verdict,
            result.findings(),
            now_ms=now_ms(),
            docs=options.docs,
            kept=result.newest_nights(MOST_NIGHTS),
        )
        try:
            options.html.write_text(page)
        except OSError as error:
            raise ResultUnusable(f"{options.html}: {error.strerror}") from error
        print_lines([f"{verdict.answer.value}: {options.html}"])
        return _finish(verdict)
    if options.json:
        findings = list(result.findings())
        print_lines([json.dumps({**json.loads(result.verdict_text()), "findings": findings})])
    else:
        print_lines(long_report(verdict, result.findings()))
    return _finish(verdict)


def history(options: Options) -> int:
    """Print a line for each night that is kept."""
    result = Result(options.folder)
    nights = [result.night(name) for name in result.nights()]
    if not nights:
        raise ResultUnusable(f"{options.folder}: no night is kept there")
    print_lines([json.dumps(history_document(nights))] if options.json else history_lines(nights))
    return ExitStatus.DONE


def diff(options: Options) -> int:
    """Print which findings are new and which are gone between two nights."""
    result = Result(options.folder)
    earlier, later = result.night(options.earlier), result.night(options.later)
    if options.json:
        print_lines([json.dumps(change_document(earlier, later))])
    else:
        print_lines(change_lines(earlier, later))
    if later.answer is Answer.UNKNOWN:
        return ExitStatus.BAD_INPUT
    if change_between(earlier, later).new:
        return ExitStatus.FAILED
    return ExitStatus.BAD_INPUT if later.left_out else ExitStatus.DONE


def _stored(result: Result) -> Verdict:
    try:
        return decode(result.verdict_text())
    except ValueError as error:
        raise ResultUnusable(f"{result.folder}: {error}") from error


def _tell_age(verdict: Verdict) -> None:
    """Say on standard error that a verdict is old, or of the future."""
    age_ms = now_ms() - verdict.ended_ms
    if abs(age_ms) > OLD_MS:
        hours = f"{abs(age_ms) / 3_600_000:,.0f} hours {'ago' if age_ms > 0 else 'ahead'}"
        complain(
            "spark-audit",
            f"this audit ended {hours} by the clock, and says nothing of what was written since; "
            "run the audit again",
        )


def _finish(verdict: Verdict) -> int:
    if verdict.answer is Answer.UNKNOWN:
        complain("spark-audit", f"could not tell: {verdict.problem}")
    return verdict.answer.exit_status


def print_lines(lines: Iterable[str]) -> None:
    """Print lines; a name from outside stays within its line."""
    for line in lines:
        print_line(line)
    sys.stdout.flush()
