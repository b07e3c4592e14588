"""The command line of `spark-audit`: what there is to type, and what each command loads."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from runtime.program.command import Act, Command, Completes, Option, Options, Word
from runtime.program.program import ExitStatus, Faults, Program


def _run() -> Act:
    from spark_audit.commands import run

    return run


def _digest() -> Act:
    from spark_audit.commands import digest

    return digest


def _report() -> Act:
    from spark_audit.commands import report

    return report


def _history() -> Act:
    from spark_audit.commands import history

    return history


def _diff() -> Act:
    from spark_audit.commands import diff

    return diff


def _package() -> Act:
    from spark_audit.commands import package

    return package


def _metrics() -> Act:
    from runtime.program.starting import unwind_at_signals
    from spark_audit.result.exporter import serve  # of the other commands it needs nothing

    async def serve_metrics(options: Options) -> int:
        unwind_at_signals()
        await serve(options.configuration)
        return ExitStatus.DONE

    return serve_metrics


def _faults() -> Faults:
    from runtime.configuration.config import ConfigurationError
    from runtime.pages.metrics import AddressInUse
    from spark_audit.commands import BadSetting
    from spark_audit.evidence.rows import EvidenceUnusable
    from spark_audit.result.store import ResultUnusable

    faults = (ConfigurationError, ResultUnusable, AddressInUse, BadSetting, EvidenceUnusable)
    return dict.fromkeys(faults, ExitStatus.BAD_INPUT)


_RESULT: Final = Word(
    name="folder",
    metavar="FOLDER",
    help="the folder of a result",
    convert=Path,
    completes=Completes.DIRECTORY,
)
_JSON: Final = Option(names=("--json",), help="print JSON instead of text")
_ON_A_CLUSTER: Final = (
    Option(
        names=("--master",),
        metavar="MASTER",
        help="the master of a Spark cluster (default: audit.master of the "
        "configuration, or a Spark inside of this program)",
    ),
    Option(
        names=("--conf",),
        metavar="NAME=VALUE",
        help="a setting of Spark's own; the option may be repeated",
        is_repeated=True,
    ),
)

PROGRAM: Final = Program(
    name="spark-audit",
    description="Read both logs independently, and find every record that is lost, duplicated, "
    "reordered, altered or only on the target.",
    commands=(
        Command(
            name="run",
            help="Audit now, store the result and print a short report.",
            load=_run,
            examples=(
                "spark-audit run dc.yaml",
                "spark-audit run --topic orders --topic payments --output /tmp/audit dc.yaml",
                "spark-audit run --json --config dc.yaml",
            ),
            options=(
                Option(
                    names=("--output",),
                    metavar="FOLDER",
                    help="the result's folder (default: audit.output of the configuration)",
                    convert=Path,
                    completes=Completes.DIRECTORY,
                ),
                Option(
                    names=("--topic",),
                    metavar="TOPIC",
                    help="audit only this topic; the option may be repeated",
                    is_repeated=True,
                ),
                *_ON_A_CLUSTER,
                Option(names=("--full",), help="read all, whatever sites' evidence tells"),
                Option(names=("--json",), help="print verdict.json instead of the report"),
            ),
            reads_configuration=True,
            takes_set=True,
        ),
        Command(
            name="digest",
            help="Add what is new in a site's logs to the evidence of that site, beside it.",
            load=_digest,
            examples=("spark-audit digest dc1", "spark-audit digest dc2 --full dc.yaml"),
            words=(Word(name="site", metavar="SITE", help="a cluster of the configuration"),),
            options=(
                *_ON_A_CLUSTER,
                Option(names=("--full",), help="forget what is remembered, and read all"),
                _JSON,
            ),
            reads_configuration=True,
            takes_set=True,
            statuses={
                ExitStatus.DONE: "The evidence tells of all of the site's logs.",
                ExitStatus.BAD_INPUT: "A log says otherwise than its evidence, could not be read, "
                "or the input is bad.",
            },
        ),
        Command(
            name="report",
            help="Print a stored result with every finding.",
            load=_report,
            examples=(
                "spark-audit report audit",
                "spark-audit report --json audit",
                "spark-audit report --html audit.html audit",
            ),
            words=(_RESULT,),
            options=(
                Option(names=("--json",), help="print verdict.json and all findings"),
                Option(
                    names=("--html",),
                    metavar="FILE",
                    help="write the result as one page that needs no other file",
                    convert=Path,
                    completes=Completes.FILE,
                ),
                Option(
                    names=("--docs",),
                    metavar="ADDRESS",
                    help="the address of this documentation, for links in the page",
                ),
            ),
        ),
        Command(
            name="history",
            help="Print the verdicts of the nights that are kept, one a line.",
            load=_history,
            examples=("spark-audit history audit",),
            words=(_RESULT,),
            options=(_JSON,),
            statuses={
                ExitStatus.DONE: "There are nights.",
                ExitStatus.BAD_INPUT: "No night is kept there, or one cannot be read.",
            },
        ),
        Command(
            name="diff",
            help="Print which findings are new, and which are gone, between two nights.",
            load=_diff,
            examples=("spark-audit diff audit 20260101T020000Z 20260102T020000Z",),
            words=(
                _RESULT,
                Word(name="earlier", metavar="NIGHT", help="a night that `history` names"),
                Word(name="later", metavar="NIGHT", help="another one"),
            ),
            options=(_JSON,),
            statuses={
                ExitStatus.DONE: "The later night has no finding that the earlier one had not.",
                ExitStatus.FAILED: "The later night has new findings.",
                ExitStatus.BAD_INPUT: "The later night could not tell, or has more findings than "
                "are kept, or the input is bad.",
            },
        ),
        Command(
            name="package",
            help="Write an archive with what Spark's workers import, for --py-files.",
            load=_package,
            examples=("spark-audit package workers.zip",),
            words=(
                Word(
                    name="archive",
                    metavar="FILE",
                    help="the archive",
                    convert=Path,
                    completes=Completes.FILE,
                ),
            ),
        ),
        Command(
            name="metrics",
            help="Serve the last stored verdict as metrics until a signal ends the program.",
            load=_metrics,
            has_json=False,
            examples=("spark-audit metrics dc.yaml",),
            reads_configuration=True,
            takes_set=True,
            statuses={
                ExitStatus.DONE: "A signal ended the program.",
                ExitStatus.BAD_INPUT: "The input is bad, or the address is in use.",
            },
        ),
    ),
    examples=("spark-audit run dc.yaml", "spark-audit report audit"),
    statuses={
        ExitStatus.DONE: "The audit is clean: everything that it compared is equal or explained.",
        ExitStatus.FAILED: "The audit has findings.",
        ExitStatus.BAD_INPUT: "The audit could not tell, or the input is bad.",
        143: "SIGTERM ended the program.",
    },
    faults=_faults,
    extra="audit",
    broken=ExitStatus.BAD_INPUT,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    return PROGRAM.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
