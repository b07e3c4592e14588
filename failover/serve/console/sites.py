"""Brokers, topics, leaders, replicas in sync and sizes of every site, side by side."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final
from urllib.parse import urlencode

import trio

from failover.sites.opening import open_site
from failover.sites.site import brief
from runtime.configuration.config import ClusterConfig, Configuration
from runtime.console.frame import ROOT, PagePart, PageParts
from runtime.console.tables import (
    Column,
    ListQuery,
    count,
    counted,
    mark,
    pager,
    search_form,
    table,
    unknown,
    when,
)
from runtime.pages.markup import shown
from runtime.process.clock import wall_ms
from wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from wire.net import Cluster, ClusterView, NetworkFault, PartitionView
from wire.topic_partition import TopicPartition
from wire.values import frozen

LOOK_TIMEOUT_S: Final = 5.0
SORTS: Final = ("name", "worst", "size")
MOST_PARTITIONS: Final = 1_000
"""So many partitions of a topic are listed."""
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_PARTITIONS: Final = (
    Column("partition"),
    Column("leader"),
    Column("replicas"),
    Column("in sync"),
    Column("size", is_number=True),
)


@frozen
class ClusterSeen:
    """One cluster as it was seen, or why it was not."""

    name: str
    view: ClusterView | None = None
    fault: str | None = None
    sizes: Mapping[tuple[int, TopicPartition], int] | None = None
    """Bytes by broker and partition; None where brokers do not tell."""
    why_no_sizes: str = ""
    free: Mapping[int, tuple[int, int]] | None = None
    """By broker the bytes that are free on its fullest disk, and of how many."""
    looked_ms: int = 0

    def size_of(self, topic: str, index: int, leader: int) -> int | None:
        """Return the bytes that the leader has of a partition."""
        return (self.sizes or {}).get((leader, TopicPartition(topic, index)))

    def topic_size(self, topic: str) -> int | None:
        """Return the bytes of all leaders; None as soon as one is not known."""
        found = None if self.view is None else self.view.topics.get(topic)
        if found is None or self.sizes is None:
            return None
        sizes = [self.size_of(topic, index, one.leader) for index, one in found.partitions.items()]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None


async def look_at_sites(configuration: Configuration) -> Sequence[ClusterSeen]:
    """Ask every cluster, all at once; one that does not answer is part of the picture."""
    found: dict[str, ClusterSeen] = {}

    async def look(cluster: ClusterConfig) -> None:
        found[cluster.name] = await _look_at(cluster)

    async with trio.open_nursery() as nursery:
        for cluster in configuration.clusters.values():
            nursery.start_soon(look, cluster)
    return [found[name] for name in configuration.clusters]


async def _look_at(cluster: ClusterConfig) -> ClusterSeen:
    fault = f"no answer within {LOOK_TIMEOUT_S:g} s"
    with trio.move_on_after(LOOK_TIMEOUT_S):
        try:
            async with open_site(cluster) as site:
                view = await site.cluster.metadata(refresh=True)
                sizes, free, why = await _sizes(site.cluster, view)
        except NetworkFault as error:
            fault = brief(error)
        else:
            return ClusterSeen(
                name=cluster.name,
                view=view,
                sizes=sizes,
                free=free,
                why_no_sizes=why,
                looked_ms=wall_ms(),
            )
    return ClusterSeen(name=cluster.name, fault=fault, looked_ms=wall_ms())


async def _sizes(
    cluster: Cluster, view: ClusterView
) -> tuple[
    Mapping[tuple[int, TopicPartition], int] | None, Mapping[int, tuple[int, int]] | None, str
]:
    """Return what lies on each broker's disks, or why that is not known of all."""
    answers: dict[int, DescribeLogDirsResponse] = {}
    faults: list[str] = []

    async def ask(node: int) -> None:
        try:
            answers[node] = await cluster.request(DescribeLogDirsRequest(topics=None), node=node)
        except NetworkFault as error:
            faults.append(f"broker {node}: {brief(error)}")

    async with trio.open_nursery() as nursery:
        for node in view.brokers:
            nursery.start_soon(ask, node)
    for node, answer in answers.items():
        if answer.error_code or any(one.error_code for one in answer.results):
            faults.append(f"broker {node} refuses to tell (DESCRIBE on the cluster is needed)")
    sizes = {
        (node, TopicPartition(topic.name, one.partition_index)): one.partition_size
        for node, answer in answers.items()
        for folder in answer.results
        for topic in folder.topics
        for one in topic.partitions
        if not one.is_future_key
    }
    return sizes if answers else None, _free_space(answers), "; ".join(faults)


def _free_space(answers: Mapping[int, DescribeLogDirsResponse]) -> Mapping[int, tuple[int, int]]:
    """Return the bytes that are free on each broker's fullest disk, and of how many."""
    free: dict[int, tuple[int, int]] = {}
    for node, answer in answers.items():
        for folder in answer.results:
            if folder.total_bytes >= 0:
                fullest = (folder.usable_bytes, folder.total_bytes)
                free[node] = min(free.get(node, fullest), fullest)
    return free


# --- the page (pure) ------------------------------------------------------------------------------


def sites_page(sites: Sequence[ClusterSeen] | None, query: Mapping[str, str]) -> PageParts:
    """Return brokers and topics of all sites, or one topic's partitions; raises BadTarget."""
    asked = ListQuery.of(query, SORTS)
    form = search_form(asked, "Topic")
    if sites is None:
        said = "<p>The sites are being asked; what they say shows here by itself.</p>"
        return PageParts(title="Sites", parts=[PagePart("asked", said)], form=form)
    topic = query.get("topic")
    if topic is not None:
        parts = [PagePart(f"s{number}", _topic(one, topic)) for number, one in enumerate(sites)]
        return PageParts(title=f"Topic {topic}", parts=parts, form=form)
    parts = [PagePart(f"s{number}", _brokers(one)) for number, one in enumerate(sites)]
    parts.append(PagePart("topics", _topics(sites, asked)))
    return PageParts(title="Sites", parts=parts, form=form)


def _brokers(site: ClusterSeen) -> str:
    head = f"<h2>{shown(site.name)}</h2>"
    if site.view is None:
        return f"{head}<p>{unknown(site.fault or 'nobody has looked')}</p>"
    view = site.view
    led = [one.leader for topic in view.topics.values() for one in topic.partitions.values()]
    rows = [
        (
            f"<strong>{node}</strong>"
            + (f" {mark('calm', 'controller')}" if node == view.controller_id else ""),
            shown(f"{broker.host}:{broker.port}"),
            shown(broker.rack or ""),
            f"{led.count(node):,}",
            _free(site, node),
        )
        for node, broker in sorted(view.brokers.items())
    ]
    columns = (
        Column("broker"),
        Column("address"),
        Column("rack"),
        Column("leads", is_number=True),
        Column("free on its fullest disk", is_number=True),
    )
    no_sizes = f"<p>{unknown(f'sizes: {site.why_no_sizes}')}</p>" if site.why_no_sizes else ""
    return (
        f"{head}{table(f'Brokers of {site.name}', columns, rows)}{no_sizes}"
        f'<p class="soft">As of {when(site.looked_ms)}.</p>'
    )


def _free(site: ClusterSeen, node: int) -> str:
    if site.free is None or node not in site.free:
        return "not known"
    usable, total = site.free[node]
    return f"{size(usable)} of {size(total)}"


def size(number: int | None) -> str:
    """Return bytes for people."""
    if number is None:
        return "not known"
    power = min(len(_UNITS) - 1, max(0, (number.bit_length() - 1) // 10))
    return f"{number / 1_024**power:,.{1 if power else 0}f} {_UNITS[power]}"


def _topics(sites: Sequence[ClusterSeen], asked: ListQuery) -> str:
    seen = [site for site in sites if site.view is not None]
    names = {name for site in seen for name in (site.view.topics if site.view else ())}
    found = [name for name in names if asked.finds(name)]
    found.sort(key=lambda name: (*_rank(seen, name, asked.sort), name))
    columns = [Column("topic", sort="name")]
    for site in sites:
        columns += [
            Column(f"partitions on {site.name}", is_number=True),
            Column(f"size on {site.name}", is_number=True, sort="size"),
            Column(f"replicas on {site.name}", sort="worst"),
        ]
    rows = [
        [_topic_link(name), *(cell for site in sites for cell in _topic_cells(site, name))]
        for name in asked.part(found)
    ]
    return (
        "<h2>Topics</h2>"
        + pager(asked, len(found), len(names), "topics")
        + table("Topics", columns, rows, asked)
    )


def _rank(sites: Sequence[ClusterSeen], name: str, sort: str) -> tuple[int, ...]:
    if sort == "size":
        return (-max((site.topic_size(name) or 0 for site in sites), default=0),)
    if sort == "worst":
        return (-sum(_lacking(one) for site in sites for one in _partitions(site, name)),)
    return ()


def _partitions(site: ClusterSeen, name: str) -> Sequence[PartitionView]:
    topic = None if site.view is None else site.view.topics.get(name)
    return () if topic is None else tuple(topic.partitions.values())


def _lacking(one: PartitionView) -> int:
    """Return how bad it is: no leader weighs more than replicas out of sync."""
    return 1_000 * (one.leader < 0) + (len(one.isr) < len(one.replicas))


def _topic_link(name: str) -> str:
    address = f"{ROOT}/sites?{urlencode({'topic': name})}"
    return f'<a href="{escape(address)}">{shown(name)}</a>'


def _topic_cells(site: ClusterSeen, name: str) -> Sequence[str]:
    if site.view is None:
        return ("not known", "not known", "not known")
    if name not in site.view.topics:
        return ("-", "-", mark("calm", "not there"))
    parts = _partitions(site, name)
    return (f"{len(parts):,}", size(site.topic_size(name)), _replicas(parts))


def _replicas(parts: Sequence[PartitionView]) -> str:
    leaderless = sum(one.leader < 0 for one in parts)
    lagging = sum(len(one.isr) < len(one.replicas) for one in parts)
    if leaderless:
        return mark("bad", f"{counted(leaderless, 'partition')} without a leader")
    if lagging:
        return mark("unsure", f"{counted(lagging, 'partition')} not all in sync")
    return mark("good", "in sync") if parts else mark("unsure", "not known")


def _topic(site: ClusterSeen, name: str) -> str:
    head = f"<h2>{shown(site.name)}</h2>"
    if site.view is None:
        return f"{head}<p>{unknown(site.fault or 'nobody has looked')}</p>"
    topic = site.view.topics.get(name)
    if topic is None:
        return f"{head}<p>{shown(site.name)} has no topic of this name.</p>"
    rows = [
        (
            f"<strong>{index}</strong>",
            mark("bad", "none") if one.leader < 0 else str(one.leader),
            _nodes(one.replicas),
            mark("unsure", _nodes(one.isr))
            if len(one.isr) < len(one.replicas)
            else _nodes(one.isr),
            size(site.size_of(name, index, one.leader)),
        )
        for index, one in sorted(topic.partitions.items())[:MOST_PARTITIONS]
    ]
    more = len(topic.partitions) - MOST_PARTITIONS
    rest = f"<p>{count(more)} more are not listed.</p>" if more > 0 else ""
    return f"{head}{table(f'{name} on {site.name}', _PARTITIONS, rows)}{rest}"


def _nodes(nodes: Sequence[int]) -> str:
    return ", ".join(map(str, nodes)) or "none"
