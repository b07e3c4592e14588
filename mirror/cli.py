"""The command line of `mirror`: its commands, and the exit status of each fault."""

import sys
from collections.abc import Sequence
from typing import Final

from mirror.command_lines.config_file import CONFIG_FILE
from mirror.command_lines.orders import ORDERS
from mirror.command_lines.positions import POSITIONS
from mirror.command_lines.repairs import REPAIRS
from mirror.command_lines.running import RUNNING
from runtime.program.program import ExitStatus, Faults, Program


def _faults() -> Faults:
    from mirror.commands.acls import NoPrincipal
    from mirror.commands.check import CheckFailed
    from mirror.commands.orders import OrderFailed
    from mirror.commands.position_words import PositionsUnreadable
    from mirror.commands.positions import CommandFailed
    from mirror.commands.status_choice import UnknownState
    from mirror.state.orders import OrderRefused
    from runtime.configuration.reading.mistakes import ConfigurationError
    from runtime.pages.metrics import AddressInUse

    return dict.fromkeys(
        (
            ConfigurationError,
            AddressInUse,
            NoPrincipal,
            CheckFailed,
            CommandFailed,
            PositionsUnreadable,
            OrderFailed,
            OrderRefused,
            UnknownState,
        ),
        ExitStatus.BAD_INPUT,
    )


PROGRAM: Final = Program(
    name="mirror",
    description="Copy topics and consumer positions from one Kafka cluster to another.",
    commands=(*RUNNING, *ORDERS, *POSITIONS, *REPAIRS, *CONFIG_FILE),
    nouns={"config": "Check the configuration; print an example, or the schema."},
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
