"""`failover divergence`."""

import json

from failover.commands.running import show
from failover.view.divergence import list_divergence
from failover.view.divergent_parts import Listed, UndecidedPart
from runtime.process.output import complain
from runtime.program.command import Options
from runtime.program.program import ExitStatus


async def divergence(options: Options) -> int:
    """List what only one site has, and what was set aside; 1 where something is to be decided."""

    def tell(found: Listed | UndecidedPart | str) -> None:
        if not options.json:
            show(found if isinstance(found, str) else found.line())
        elif isinstance(found, Listed):
            show(json.dumps(found.document()))
        else:
            complain("failover", found if isinstance(found, str) else found.line())

    tally = await list_divergence(options.configuration, tell)
    said = (
        f"{tally.pending} records are on one site alone, {tally.set_aside} were set aside,"
        f" {tally.foreign} were written to a standby"
    )
    complain("failover", said) if options.json else show(said)
    is_left = tally.pending or tally.unseen or tally.not_looked
    return ExitStatus.FAILED if is_left else ExitStatus.DONE
