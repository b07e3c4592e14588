"""Commands about the positions of groups."""

from collections.abc import Awaitable
from typing import Final

from mirror.command_lines.shared import FLOW_OPTION, JSON
from runtime.program.command import Act, Command, Option, Options, Word
from runtime.program.program import ExitStatus


def _offsets() -> Act:
    from mirror.commands.position_words import parse_offsets
    from mirror.commands.positions import PositionOptions, offsets

    def ask(options: Options) -> Awaitable[int]:
        asked = PositionOptions(flow=options.flow, as_json=options.json)
        return offsets(options.configuration, parse_offsets(options.words), asked)

    return ask


def _translate() -> Act:
    from mirror.commands.position_words import GroupName, parse_what
    from mirror.commands.positions import PositionOptions, translate

    def ask(options: Options) -> Awaitable[int]:
        what = GroupName(options.what) if options.group else parse_what(options.what)
        asked = PositionOptions(flow=options.flow, as_json=options.json, is_reverse=options.reverse)
        return translate(options.configuration, what, asked)

    return ask


POSITIONS: Final = (
    Command(
        name="offsets",
        help="Show a group's positions on both sides, and what a switch would cost the group; "
        "or export and import translated positions.",
        load=_offsets,
        examples=(
            "mirror offsets billing dc.yaml",
            "mirror offsets export billing shipping --config dc.yaml",
            "mirror offsets import positions.csv dc.yaml",
        ),
        words=(
            Word(
                name="words",
                metavar="GROUP | export [GROUP ...] | import POSITIONS",
                help="GROUP shows a group (`show GROUP` if its name is export or import); export "
                "prints positions translated to the target as CSV: group,topic,partition,offset; "
                "import commits such a file on the target, for groups without members there",
                is_repeated=True,
            ),
        ),
        reads_configuration=True,
        options=(JSON, FLOW_OPTION),
        statuses={
            ExitStatus.FAILED: "A position could not be translated, or the target refused to "
            "commit one."
        },
    ),
    Command(
        name="translate",
        help="Show where a position lies on the other side.",
        load=_translate,
        examples=(
            "mirror translate orders:3:1742 dc.yaml",
            "mirror translate billing --json dc.yaml",
            "mirror translate --reverse orders:3:1742 dc.yaml",
        ),
        words=(
            Word(
                name="what",
                metavar="GROUP | TOPIC:PARTITION:OFFSET",
                help="all positions of a group, or one offset",
            ),
        ),
        reads_configuration=True,
        options=(
            Option(names=("--group",), help="take the word for a group, whatever it looks like"),
            Option(names=("--reverse",), help="translate from the target to the source"),
            JSON,
            FLOW_OPTION,
        ),
        statuses={ExitStatus.FAILED: "The position has no exact counterpart."},
    ),
)
