"""Roles, fences, flows and the last promotion: read once, shown as text, JSON or metrics."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import trio

from failover.journal.journal import Journal, encode_journal
from failover.journal.journals import JournalReader, find_unfinished
from failover.journal.steps import PromotionState
from failover.moving.flow import FlowControl
from failover.sites.fence import read_fence
from failover.sites.site import brief
from failover.view.snapshot import flow_between, open_site
from runtime.configuration.config import ClusterConfig, Configuration, FlowConfig
from runtime.coordination.witness import ActiveSite, FlowCommand, WitnessPaths, WorkerInfo
from runtime.coordination.zookeeper import ZooKeeper
from wire.net import NetworkFault

SITE_TIMEOUT_S: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteStatus:
    """One site; `fault` is None when it answers, and only then are its topics known.

    `open_topics` are those of flows out of it or into it that take writes, of an idle site only.
    """

    name: str
    is_active: bool
    fault: str | None
    fenced_topics: tuple[str, ...]
    allowed_clients: tuple[str, ...]
    open_topics: tuple[str, ...] = ()
    is_written_to: bool = False
    """Whether an idle site takes writes all the same, as records flow both ways at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStatus:
    """One flow as the witness knows it.

    Without a command it runs as soon as a worker is there and its source is the active site.
    """

    name: str
    is_out_of_active: bool
    """Whether it may run at all: out of the active site, or both ways at once."""
    worker: WorkerInfo | None
    command: FlowCommand | None
    acknowledged: FlowCommand | None

    @property
    def state(self) -> str:
        """Return the state of the flow in one word or two."""
        if self.command is not None and not self.command.run:
            return "stopped" if self.acknowledged == self.command else "stopping"
        if self.worker is None:
            return "nobody runs it"
        return "runs" if self.is_out_of_active else "rests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Everything `failover status` shows.

    `last` is the promotion that ended last, `switched` the one that made the active site active,
    which may be unfinished.
    """

    active: ActiveSite
    sites: tuple[SiteStatus, ...]
    flows: tuple[FlowStatus, ...]
    unfinished: Journal | None
    last: Journal | None
    switched: Journal | None = None


async def read_status(
    configuration: Configuration,
    zookeeper: ZooKeeper,
    active: ActiveSite,
    reader: JournalReader | None = None,
) -> Status:
    """Look at the witness, which has said that `active` is, and ask both sites; writes nothing.

    Raises what reading the witness raises. A caller that looks again and again gives the same
    reader each time.
    """
    paths = WitnessPaths(root=configuration.coordination.path)
    journals = await (reader or JournalReader(zookeeper, paths)).read(active.epoch)
    flows: list[FlowStatus] = []
    for flow in configuration.flows:
        control = FlowControl(zookeeper, paths, flow)
        flows.append(
            FlowStatus(
                name=flow.name,
                is_out_of_active=not flow.heeds_promotions or flow.source == active.site,
                worker=await control.worker(),
                command=await control.command(),
                acknowledged=await control.acknowledged(),
            )
        )
    ended = [journal for journal in journals if journal.state is not PromotionState.RUNNING]
    return Status(
        active=active,
        sites=await _read_sites(configuration, active.site),
        flows=tuple(flows),
        unfinished=find_unfinished(journals),
        last=ended[-1] if ended else None,
        switched=next((one for one in journals if one.epoch == active.epoch), None),
    )


async def _read_sites(configuration: Configuration, active: str) -> tuple[SiteStatus, ...]:
    found: dict[str, SiteStatus] = {}

    async def read(cluster: ClusterConfig) -> None:
        is_active = cluster.name == active
        flows = [] if is_active else _closing(configuration, cluster.name)
        found[cluster.name] = replace(
            await _ask(cluster, flows, is_active=is_active),
            is_written_to=_is_written_to(configuration, cluster.name, active),
        )

    async with trio.open_nursery() as nursery:
        for cluster in configuration.clusters.values():
            nursery.start_soon(read, cluster)
    return tuple(found[name] for name in configuration.clusters)


def _closing(configuration: Configuration, site: str) -> list[FlowConfig]:
    """Return the flows whose topics take no writes on this site while it is not active.

    Those out of it, whose records nobody would carry anywhere, and unless the configuration says
    otherwise those into it, whose topics are the mirror's alone.
    """
    closes_standby = configuration.failover.is_standby_closed
    return [
        flow
        for flow in configuration.flows
        if flow.heeds_promotions
        and (flow.source == site or (flow.target == site and closes_standby))
    ]


def _is_written_to(configuration: Configuration, site: str, active: str) -> bool:
    """Tell whether what is written on an idle site comes to the active one."""
    flow = flow_between(configuration, site, active)
    return flow is not None and flow.is_active_active


async def _ask(
    cluster: ClusterConfig, flows: Sequence[FlowConfig], *, is_active: bool
) -> SiteStatus:
    """Look at a site, and at what these flows take from it."""
    fault = f"no answer within {SITE_TIMEOUT_S:g} s"
    with trio.move_on_after(SITE_TIMEOUT_S):
        try:
            async with open_site(cluster) as site:
                fence = await read_fence(site.cluster)
                taken = {topic for flow in flows for topic, _ in await site.partitions(flow)}
        except NetworkFault as error:
            fault = brief(error)
        else:
            return SiteStatus(
                name=cluster.name,
                is_active=is_active,
                fault=None,
                fenced_topics=fence.topics,
                allowed_clients=fence.allowed_clients,
                open_topics=tuple(sorted(taken - set(fence.topics))),
            )
    return SiteStatus(
        name=cluster.name, is_active=is_active, fault=fault, fenced_topics=(), allowed_clients=()
    )


def status_lines(status: Status) -> Iterator[str]:
    """Yield the lines of the human form."""
    moving = f", moving to {status.active.moving_to}" if status.active.moving_to else ""
    yield f"active   {status.active.site} (epoch {status.active.epoch}){moving}"
    for site in status.sites:
        role = "active" if site.is_active else "standby"
        fence = f"fenced: {', '.join(site.fenced_topics)}" if site.fenced_topics else "not fenced"
        yield f"site     {site.name}: {role}, {fence if site.fault is None else site.fault}"
    for flow in status.flows:
        worker = f" (process {flow.worker.pid} on {flow.worker.host})" if flow.worker else ""
        yield f"flow     {flow.name}: {flow.state}{worker}"
    if status.unfinished is not None:
        yield f"begun    {_promotion(status.unfinished)}"
    yield f"last     {_promotion(status.last) if status.last else 'no promotion yet'}"


def _promotion(journal: Journal) -> str:
    steps = journal.steps
    at = f", at {steps[-1].name}" if journal.state is PromotionState.RUNNING and steps else ""
    rto = f", RTO {journal.rto_ms / 1000:.2f} s" if journal.rto_ms is not None else ""
    why = f": {journal.reason}" if journal.reason else ""
    by = f", by {journal.given[0].user} on {journal.given[0].host}" if journal.given else ""
    how = f"{journal.kind} to {journal.site}, epoch {journal.epoch}, {journal.state}"
    return f"{how}{at}{rto}{by}{why}"


def status_document(status: Status) -> Mapping[str, Any]:
    """Return the JSON form; journals are as they lie in the witness."""
    return {
        "active": asdict(status.active),
        "sites": [asdict(site) for site in status.sites],
        "flows": [{**asdict(flow), "state": flow.state} for flow in status.flows],
        "unfinished": _document(status.unfinished),
        "last": _document(status.last),
    }


def _document(journal: Journal | None) -> Any:  # noqa: ANN401 - JSON
    return None if journal is None else json.loads(encode_journal(journal))
