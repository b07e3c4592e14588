"""`failover serve`: look at each set of topics every 2 s, and serve what was seen to whoever asks.

It closes a lost site for writes as soon as that is back, and keeps it so (`site_keeper`), ends
promotions whose controller is gone (`orphans`), votes where promotions begin by themselves
(`voter`), rehearses when that is due (`rehearsals`), and shows it all as metrics and as a console.
"""

import logging
from functools import partial

import trio

from failover.canary.watch import watch_canaries
from failover.serve.automatic_metrics import AutomaticCollector
from failover.serve.console.pages import FailoverConsole
from failover.serve.readiness import ReadinessCollector, follow_readiness
from failover.serve.rehearsal_metrics import RehearsalCollector
from failover.serve.rehearsals import follow_rehearsals
from failover.serve.site_keeper import LOOKING, SiteKeeper
from failover.serve.status_collector import StatusCollector
from failover.serve.voter import configured, vote
from runtime.configuration.config import Configuration
from runtime.configuration.topic_sets import DEFAULT_SET
from runtime.pages.exposition import program_registry
from runtime.pages.metrics import serve_metrics
from runtime.pages.set_metrics import SetsCollector
from runtime.process.tasks import background_tasks
from runtime.process.unforeseen import keep_at_work

_LOG = logging.getLogger(__name__)


async def serve(
    configuration: Configuration,
    voter: str | None = None,
    *,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve metrics until cancelled, and vote under this name; report the port.

    Raises runtime.pages.metrics.AddressInUse, and ConfigurationError for a voter that is not known.
    """
    automatic = configured(configuration, voter)
    by_set = configuration.by_set()
    collectors = {name: StatusCollector() for name in by_set}
    readiness = {name: ReadinessCollector() for name in configuration.sets.of_applications}
    registry = program_registry("failover")
    registry.register(
        SetsCollector(
            {
                name: (one, readiness[name]) if name in readiness else (one,)
                for name, one in collectors.items()
            }
        )
    )
    metrics = configuration.metrics
    console = FailoverConsole(configuration, collectors, readiness)
    async with background_tasks() as tasks:
        tasks.start_soon(console.run)
        for name, of_set in by_set.items():
            keeper = SiteKeeper(of_set, collectors[name])
            tasks.start_soon(keep_at_work, keeper.run, keeper.trouble, LOOKING)
            if name in readiness:
                tasks.start_soon(follow_readiness, of_set, readiness[name])
        active_site = collectors[DEFAULT_SET].active_site
        tasks.start_soon(watch_canaries, configuration, registry, active_site)
        if (rehearsal := configuration.failover.rehearsal) is not None:
            rehearsals = RehearsalCollector(rehearsal)
            registry.register(rehearsals)
            tasks.start_soon(follow_rehearsals, configuration, rehearsal, rehearsals)
        if automatic is not None and voter is not None:
            votes = AutomaticCollector(automatic.voters)
            registry.register(votes)
            tasks.start_soon(vote, configuration.of_set(DEFAULT_SET), automatic, voter, votes)
        port = await tasks.start(
            partial(
                serve_metrics,
                metrics.host,
                metrics.failover_port,
                ready=lambda: all(one.status is not None for one in collectors.values()),
                registry=registry,
                door=metrics.door,
                browse=console.browse,
            )
        )
        address = f"{metrics.door.scheme}://{metrics.host}:{port}"
        _LOG.info("console at %s/, metrics at %s/metrics", address, address)
        task_status.started(port)
        await trio.sleep_forever()
