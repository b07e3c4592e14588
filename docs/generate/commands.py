"""The pages about the command line: commands, options and exit statuses of the programs."""

from collections.abc import Iterator
from typing import Final

import broker.cli
import failover.cli
import mirror.cli
import spark_audit.cli
from docs.generate.markdown import code, literal, page, section, sentence, table
from runtime.program.command import Statuses
from runtime.program.program import OF_EVERY_PROGRAM, CommandReference, Program

PROGRAMS: Final[tuple[Program, ...]] = (
    mirror.cli.PROGRAM,
    failover.cli.PROGRAM,
    spark_audit.cli.PROGRAM,
    broker.cli.PROGRAM,
)

COMMANDS_ARE: Final = """
Every command has `--help`, with examples. Every program has `--version`. `--log-format text|json`,
`--log-level LEVEL` and `--verbose` (as `--log-level debug`) stand before the command, and go before
[`log`](configuration.md) of the file. [JSON output](json-output.md) has what `--json` prints. FILE
is the YAML [configuration](configuration.md): the word at the end, or `--config FILE`, or
`./dc.yaml`, or the file that the variable `KAFKA_DR_CONFIG` names.
"""

STATUSES_ARE: Final = """
0 says that the thing was done. 1 says that the thing itself failed, or that there are findings. 2
says that the input was bad, or that it could not be told. Some commands have meanings of their
own.

A promotion whose reader has gone (`| head`) goes on to its end all the same, and ends with its
own status. An audit that cannot tell of some partitions names them and compares the others: 1 if
those have findings, else 2. A corrupt batch is listed as a finding, and nobody knows what is in it:
2, unless there are other findings. So is one in what the audit itself needs, as in a map. A
`spark-audit` that a signal ends says so with 130 or 143, and its last result stays.
"""


def commands_page() -> str:
    """Return the page about commands and options."""
    return page("Command line", COMMANDS_ARE, *(_program(program) for program in PROGRAMS))


def statuses_page() -> str:
    """Return the page about exit statuses."""
    return page(
        "Exit statuses",
        STATUSES_ARE,
        section("Every program", _statuses(OF_EVERY_PROGRAM)),
        *(section(literal(one.name), _statuses(one.statuses)) for one in PROGRAMS),
        section("Commands with meanings of their own", _own_meanings()),
    )


def _program(program: Program) -> str:
    commands = [_command(program, command) for command in program.reference()]
    return section(literal(program.name), sentence(program.description), *commands)


def _command(program: Program, command: CommandReference) -> str:
    parts = [
        f"### {literal(f'{program.name} {command.name}')}",
        sentence(command.help),
        code(command.usage, "text"),
        code("\n".join(command.examples), "sh"),
    ]
    if command.arguments:
        rows = ((literal(typed), sentence(text)) for typed, text in command.arguments)
        parts.insert(3, table(("argument", "meaning"), rows))
    return "\n\n".join(parts)


def _statuses(statuses: Statuses) -> str:
    return table(("status", "meaning"), ((f"{int(one)}", text) for one, text in statuses.items()))


def _own_meanings() -> str:
    return table(("command", "status", "meaning"), _own_rows())


def _own_rows() -> Iterator[tuple[str, str, str]]:
    for program in PROGRAMS:
        for command in program.reference():
            for status, text in command.statuses.items():
                if program.all_statuses.get(status) != text:
                    yield literal(f"{program.name} {command.name}"), f"{int(status)}", text
