"""Words and options that commands of several kinds have."""

from typing import Final

from runtime.program.command import Option

JSON: Final = Option(names=("--json",), help="print JSON instead of text")
FLOW_OPTION: Final = Option(
    names=("--flow",),
    metavar="SOURCE->TARGET",
    help="the flow that is meant; needed where the file has several",
)
