"""Commands that leave an order for a flow in the witness."""

from collections.abc import Awaitable
from typing import Final

from runtime.process.output import print_line
from runtime.program.command import Act, Command, Option, Options, Word
from runtime.program.program import ExitStatus

FLOW: Final = Word(name="flow", metavar="FLOW", help="the flow, written as dc1-dc2")
SCOPE: Final = Word(
    name="scope",
    metavar="TOPIC[:PARTITION]",
    help="a topic or one partition of it (default: the whole flow)",
    is_optional=True,
)


def _pause() -> Act:
    from mirror.commands.orders import pause
    from mirror.state.orders import Scope

    return lambda options: _show_line(
        pause(options.configuration, options.flow, Scope.parse(options.scope))
    )


def _resume() -> Act:
    from mirror.commands.orders import resume
    from mirror.state.orders import Scope

    return lambda options: _show_line(
        resume(options.configuration, options.flow, Scope.parse(options.scope))
    )


def _restart() -> Act:
    from mirror.commands.orders import restart
    from mirror.state.orders import How, Scope

    def order(options: Options) -> Awaitable[int]:
        chosen = {
            How.SKIP: options.skip,
            How.QUARANTINE: options.quarantine,
            How.MERGE: options.merge,
            How.ANEW: options.from_earliest,
        }
        how = next((one for one, is_chosen in chosen.items() if is_chosen), How.RETRY)
        scope = Scope.parse(options.scope)
        return _show_line(restart(options.configuration, options.flow, scope, how))

    return order


async def _show_line(line: Awaitable[str]) -> int:
    print_line(await line)
    return ExitStatus.DONE


ORDERS: Final = (
    Command(
        name="pause",
        help="Stop mirroring a flow, a topic or a partition until `mirror resume`.",
        load=_pause,
        examples=(
            "mirror pause dc1-dc2",
            "mirror pause dc1-dc2 orders:3 dc.yaml",
            "mirror pause dc1-dc2 orders --config dc.yaml",
        ),
        words=(FLOW, SCOPE),
        reads_configuration=True,
        takes_set=True,
    ),
    Command(
        name="resume",
        help="Resume a paused flow, topic or partition where it stood.",
        load=_resume,
        examples=("mirror resume dc1-dc2 orders:3 dc.yaml",),
        words=(FLOW, SCOPE),
        reads_configuration=True,
        takes_set=True,
    ),
    Command(
        name="restart",
        help="Let a flow, topic or partition that has stopped try again once. The daemon does so "
        "now, or the next daemon when it starts.",
        load=_restart,
        examples=(
            "mirror restart dc1-dc2 orders:3 dc.yaml",
            "mirror restart dc1-dc2 orders dc.yaml --skip",
            "mirror restart dc2-dc1 orders dc.yaml --quarantine",
            "mirror restart --from-earliest dc1-dc2 orders dc.yaml",
        ),
        words=(FLOW, SCOPE),
        reads_configuration=True,
        takes_set=True,
        options=(
            Option(
                names=("--skip",),
                group="how",
                help="leave out what cannot be mirrored, and count it",
            ),
            Option(
                names=("--quarantine",),
                group="how",
                help="of a diverged target: save what it alone has to TOPIC.diverged on both sites "
                "and to a file, and leave it out of the flow back",
            ),
            Option(
                names=("--merge",),
                group="how",
                help="of a diverged target: keep what it alone has, which the flow back appends "
                "late; the log says how many keys end with different values",
            ),
            Option(
                names=("--from-earliest",),
                group="how",
                help="delete the target's copy of the TOPIC and mirror the topic from its first "
                "record",
            ),
        ),
    ),
)
