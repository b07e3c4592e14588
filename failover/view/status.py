"""Roles, fences, flows and the last promotion: read once, shown as text, JSON or metrics."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from types import MappingProxyType
from typing import Any, Final

import trio

from failover.automatic.hold import Hold, read_hold
from failover.automatic.votes import Vote, read_votes, vote_lines, votes_document
from failover.journal.journal import Journal, encode_journal
from failover.journal.journals import JournalReader, find_unfinished
from failover.journal.steps import PromotionState
from failover.moving.flow import FlowControl
from failover.sites.fence import find_due_bars, read_fence
from failover.sites.opening import flow_between, open_site
from failover.sites.shared_fence import SiteParts, closing_flows, read_other_sets
from failover.sites.site import brief
from runtime.configuration.config import ClusterConfig, Configuration
from runtime.coordination.witness import ActiveSite, FlowCommand, WorkerInfo
from runtime.coordination.zookeeper import ZooKeeper
from runtime.rights.closable import why_unfenceable
from runtime.rights.creation import words_of
from wire.net import NetworkFault
from wire.net.rights import Right
from wire.values import frozen

SITE_TIMEOUT_S: Final = 3.0
NAMED_TOPICS: Final = 10
NO_OTHERS: Final[Mapping[str, ActiveSite]] = MappingProxyType({})


@frozen
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
    why_open: str | None = None
    """Why these cannot be closed; None where they can, or nothing is open."""
    denied_creation: tuple[str, ...] = ()
    """On what nobody may create topics by our fence: `orders*`, `*`, `the cluster`."""
    due_creation: tuple[str, ...] | None = None
    """On what nobody is to, as far as rights allow; None of the active site."""
    is_written_to: bool = False
    """Whether an idle site takes writes all the same, as records flow both ways at once."""


@frozen
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


@frozen
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
    hold: Hold | None = None
    voters: Mapping[str, str] = field(default_factory=dict)
    """The place of each that votes about promotions by themselves."""
    votes: Mapping[str, Vote] = field(default_factory=dict)


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
    paths = configuration.coordination.paths
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
    automatic = configuration.failover.automatic
    voters = {} if automatic is None else automatic.voters
    return Status(
        active=active,
        sites=await _read_sites(
            configuration, active.site, await read_other_sets(configuration, zookeeper)
        ),
        flows=tuple(flows),
        unfinished=find_unfinished(journals),
        last=ended[-1] if ended else None,
        switched=next((one for one in journals if one.epoch == active.epoch), None),
        hold=await read_hold(zookeeper, paths),
        voters=voters,
        votes=await read_votes(zookeeper, paths, voters),
    )


async def _read_sites(
    configuration: Configuration, active: str, others: Mapping[str, ActiveSite] = NO_OTHERS
) -> tuple[SiteStatus, ...]:
    """Look at the sites; of a fence that sets of topics share it is the part of this set."""
    found: dict[str, SiteStatus] = {}

    async def read(cluster: ClusterConfig) -> None:
        is_active = cluster.name == active
        parts = SiteParts(configuration=configuration, site=cluster.name, actives=others)
        found[cluster.name] = replace(
            await _ask(cluster, parts, is_active=is_active),
            is_written_to=_is_written_to(configuration, cluster.name, active),
        )

    async with trio.open_nursery() as nursery:
        for cluster in configuration.clusters.values():
            nursery.start_soon(read, cluster)
    return tuple(found[name] for name in configuration.clusters)


def _is_written_to(configuration: Configuration, site: str, active: str) -> bool:
    """Tell whether what is written on an idle site comes to the active one."""
    flow = flow_between(configuration, site, active)
    return flow is not None and flow.is_active_active


async def _ask(cluster: ClusterConfig, parts: SiteParts, *, is_active: bool) -> SiteStatus:
    """Look at a site, and at what is to be closed there."""
    flows = [] if is_active else closing_flows(parts.configuration, cluster.name)
    fault = f"no answer within {SITE_TIMEOUT_S:g} s"
    with trio.move_on_after(SITE_TIMEOUT_S):
        try:
            async with open_site(cluster) as site:
                whole = await read_fence(site.cluster)
                fence = parts.own_part(whole)
                taken = {topic for flow in flows for topic, _ in await site.partitions(flow)}
                lasting = frozenset[Right]() if is_active else parts.lasting_bars(whole)
                due = await find_due_bars(site.cluster, fence, lasting)
                is_open = taken - set(fence.topics)
                why_open = await why_unfenceable(site.cluster, is_open) if is_open else None
        except NetworkFault as error:
            fault = brief(error)
        else:
            return SiteStatus(
                name=cluster.name,
                is_active=is_active,
                fault=None,
                fenced_topics=fence.topics,
                allowed_clients=fence.allowed_clients,
                open_topics=tuple(sorted(is_open)),
                why_open=why_open,
                denied_creation=tuple(words_of(fence.bars)),
                due_creation=None if is_active else tuple(words_of(due)),
            )
    return SiteStatus(
        name=cluster.name, is_active=is_active, fault=fault, fenced_topics=(), allowed_clients=()
    )


@frozen
class ShownNames:
    """The names of topics that a status lists: those that match whole, some of them in a line."""

    topic: re.Pattern[str] | None = None
    lists_all: bool = False

    def chosen(self, names: Sequence[str]) -> list[str]:
        """Return the names that match."""
        return [one for one in names if self.topic is None or self.topic.fullmatch(one)]

    def words(self, names: Sequence[str]) -> str:
        """Return the names that match in a line, and how many it leaves out."""
        chosen = self.chosen(names)
        shown = chosen if self.lists_all else chosen[:NAMED_TOPICS]
        of_all = "" if len(chosen) == len(names) else f"{len(chosen)} of {len(names)} topics: "
        more = len(chosen) - len(shown)
        return f"{of_all}{', '.join(shown)}{f' and {more} more (--all lists them)' if more else ''}"


ALL_NAMES: Final = ShownNames(lists_all=True)


def status_lines(status: Status, names: ShownNames = ALL_NAMES) -> Iterator[str]:
    """Yield the lines of the human form."""
    moving = f", moving to {status.active.moving_to}" if status.active.moving_to else ""
    yield f"active   {status.active.site} (epoch {status.active.epoch}){moving}"
    for site in status.sites:
        role = "active" if site.is_active else "standby"
        fence = f"fenced: {names.words(site.fenced_topics)}" if site.fenced_topics else "not fenced"
        denied = ", ".join(site.denied_creation)
        fence += f"; CREATE is denied on {denied}" if denied else ""
        fence += f"; open: {names.words(site.open_topics)}" if site.open_topics else ""
        fence += f"; cannot be closed: {site.why_open}" if site.why_open else ""
        yield f"site     {site.name}: {role}, {fence if site.fault is None else site.fault}"
    for flow in status.flows:
        worker = f" (process {flow.worker.pid} on {flow.worker.host})" if flow.worker else ""
        yield f"flow     {flow.name}: {flow.state}{worker}"
    yield from vote_lines(status.votes, status.voters)
    if status.hold is not None:
        yield f"hold     {status.hold}"
    if status.unfinished is not None:
        yield f"begun    {_promotion(status.unfinished)}"
    yield f"last     {_promotion(status.last) if status.last else _no_journal(status.active.epoch)}"


def _no_journal(epoch: int) -> str:
    """Return why no promotion is told of: where there was an epoch, its journal may be lost."""
    if not epoch:
        return "no promotion yet"
    return f"not known: the witness holds no journal of an ended promotion (epoch {epoch})"


def _promotion(journal: Journal) -> str:
    steps = journal.steps
    at = f", at {steps[-1].name}" if journal.state is PromotionState.RUNNING and steps else ""
    rto = f", RTO {journal.rto_ms / 1000:.2f} s" if journal.rto_ms is not None else ""
    why = f": {journal.reason}" if journal.reason else ""
    by = f", by {journal.given[0].user} on {journal.given[0].host}" if journal.given else ""
    how = f"{journal.kind} to {journal.site}, epoch {journal.epoch}, {journal.state}"
    return f"{how}{at}{rto}{by}{why}"


def status_document(status: Status, names: ShownNames = ALL_NAMES) -> Mapping[str, Any]:
    """Return the JSON form; journals are as they lie in the witness."""
    return {
        "active": asdict(status.active),
        "sites": [
            {
                **asdict(site),
                "fenced_topics": names.chosen(site.fenced_topics),
                "open_topics": names.chosen(site.open_topics),
            }
            for site in status.sites
        ],
        "flows": [{**asdict(flow), "state": flow.state} for flow in status.flows],
        "hold": None if status.hold is None else status.hold.document(),
        "votes": votes_document(status.votes, status.voters),
        "unfinished": _document(status.unfinished),
        "last": _document(status.last),
    }


def _document(journal: Journal | None) -> Any:  # noqa: ANN401 - JSON
    return None if journal is None else json.loads(encode_journal(journal))
