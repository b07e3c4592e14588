"""`failover rehearse`."""

import json
from typing import Final

from failover.commands.promotion import show_if_anybody_reads
from failover.rehearsal.outcome import RehearsalState
from failover.rehearsal.run import RehearsalRequest, rehearse
from failover.rehearsal.told import rehearsal_lines
from runtime.configuration.config import Configuration
from runtime.process.output import complain
from runtime.process.patient_output import printing_aside
from runtime.program.command import Options
from runtime.program.program import ExitStatus

STATUS: Final = {
    RehearsalState.PASSED: ExitStatus.DONE,
    RehearsalState.FAILED: ExitStatus.FAILED,
    RehearsalState.REFUSED: ExitStatus.BAD_INPUT,
}


async def rehearse_site(options: Options) -> int:
    """Rehearse the promotion of a site, tell how it went, and return the status for that."""
    configuration: Configuration = options.configuration
    async with printing_aside("failover", show_if_anybody_reads) as tell:
        ended = await rehearse(
            configuration,
            RehearsalRequest(site=options.site, what=f"failover rehearse {options.site}"),
            (lambda _: None) if options.json else tell,
            wait_ms=2 * configuration.coordination.session_timeout_ms,
        )
        if options.json:
            for line in json.dumps(ended.document(), indent=2).splitlines():
                tell(line)
        else:
            for line in rehearsal_lines(ended):
                tell(line)
    if ended.state is not RehearsalState.PASSED:
        complain("failover", f"the rehearsal {ended.state}: {ended.reason}")
    return STATUS[ended.state]
