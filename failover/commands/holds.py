"""`failover hold` and `release`."""

import json

from failover.automatic.hold import hold_here, put_hold, take_hold_away
from failover.commands.running import show
from failover.journal.journals import find_unfinished, read_journals
from runtime.configuration.witness_session import open_witness
from runtime.process.clock import now_ms
from runtime.process.output import complain
from runtime.program.command import Options
from runtime.program.program import ExitStatus
from runtime.set_option import set_option


async def hold(options: Options) -> int:
    """Keep promotions from beginning; say what is under way already."""
    new = hold_here("failover hold", options.reason, now_ms())
    coordination = options.configuration.coordination
    paths = coordination.paths
    async with open_witness(coordination) as zookeeper:
        replaced = await put_hold(zookeeper, paths, new)
        await zookeeper.sync()
        by_set = [one.coordination.paths for one in options.configuration.by_set().values()]
        begun = [
            (one.topic_set, found)
            for one in by_set
            if (found := find_unfinished(await read_journals(zookeeper, one))) is not None
        ]
    if options.json:
        document = {
            "hold": new.document(),
            "replaced": None if replaced is None else replaced.document(),
            "begun": [unfinished.epoch for _, unfinished in begun],
        }
        show(json.dumps(document))
    else:
        if replaced is not None:
            show(f"replaces: {replaced}")
        show(str(new))
    for topic_set, unfinished in begun:
        complain(
            "failover",
            f"the {unfinished.kind} promotion of {unfinished.site} (epoch {unfinished.epoch}) has"
            f" begun already; `failover abort{set_option(topic_set)}` takes it back before its"
            " switch",
        )
    return ExitStatus.DONE


async def release(options: Options) -> int:
    """Let promotions begin again."""
    coordination = options.configuration.coordination
    async with open_witness(coordination) as zookeeper:
        ended = await take_hold_away(zookeeper, coordination.paths)
    if options.json:
        show(json.dumps({"released": None if ended is None else ended.document()}))
    else:
        show("nobody held promotions" if ended is None else f"released; until now: {ended}")
    return ExitStatus.DONE
