"""The options by which commands show less than all there is, or more than fits."""

import argparse
import re
from typing import Final

from runtime.program.command import Option


def pattern(text: str) -> re.Pattern[str]:
    """Return a regular expression that names have to match whole."""
    try:
        return re.compile(text, re.DOTALL)
    except re.error as wrong:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {wrong}") from wrong


def not_negative(text: str) -> int:
    """Return a number of records."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of records")
    return int(text)


TOPIC: Final = Option(
    names=("--topic",),
    metavar="PATTERN",
    convert=pattern,
    help="show only topics whose whole names match this regular expression",
)
GROUP: Final = Option(
    names=("--group",),
    metavar="PATTERN",
    convert=pattern,
    help="show only groups whose whole names match this regular expression",
)
LAG_OVER: Final = Option(
    names=("--lag-over",),
    metavar="N",
    convert=not_negative,
    help="show only what lags by more than N records, or nobody knows by how many",
)
LISTS_ALL: Final = Option(
    names=("--all",), help="list everything, however much there is; else many rows are summed up"
)
