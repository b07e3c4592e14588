"""The options that all commands have which ask a cluster."""

import argparse
from collections.abc import Callable
from typing import Any, Final

from runtime.program.command import CONFIG_OPTION, Option, Statuses
from runtime.program.program import ExitStatus

CLUSTER: Final = (
    Option(
        names=("--bootstrap",),
        metavar="HOST:PORT",
        group="cluster",
        help="brokers to ask first, several with commas (default: 127.0.0.1:9092)",
    ),
    Option(
        names=("--site",),
        metavar="NAME",
        group="cluster",
        help="a cluster of the YAML configuration, with its addresses and its security",
    ),
    CONFIG_OPTION,
)
JSON: Final = Option(names=("--json",), help="print JSON instead of a table")
LOOKS: Final = (*CLUSTER, JSON)
YES: Final = Option(names=("--yes",), help="do it without asking")
DRY_RUN: Final = Option(names=("--dry-run",), help="change nothing, and say whether it could be")
STATUSES: Final[Statuses] = {
    ExitStatus.FAILED: "The cluster did not answer or refused, or the question was answered no; "
    "what was refused is named.",
}
MOST: Final = (1 << 31) - 1
MOST_64: Final = (1 << 63) - 1


def whole(least: int, most: int = MOST) -> Callable[[str], int]:
    """Return what reads a whole number within these limits."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from error
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{value} is not between {least} and {most}")
        return value

    return read


def read_by(parse: str) -> Callable[[str], Any]:
    """Return what reads a value by a function of `broker.commands.resetting`."""

    def read(text: str) -> Any:  # noqa: ANN401 - what the function returns
        from broker.commands import resetting

        try:
            return getattr(resetting, parse)(text)
        except ValueError as wrong:
            raise argparse.ArgumentTypeError(str(wrong)) from wrong

    return read
