"""The one fence of a site, which all sets of topics share: each step changes its own set's part.

A cluster has one fence, and to set it replaces all of it. So a step that closes or opens topics of
one set reads first which site is active for each other set. What those have closed stays closed.

    set        active   on dc1                 on dc2
    default    dc1      open                   closed
    payments   dc2      closed                 open
    stock      dc1, being moved: as the step that does it has left it, on both

A fence by rights keeps topics from being made by entries on names and prefixes. That of the default
set may be wider than its topics (`*`). Where it would shut out a set that is open on the site it is
left out, and `failover serve` closes a topic that is made there a moment later.

Without sets a fence is what the step says, and nobody is asked.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from enum import Enum, auto

from failover.sites.fence import Fence, as_allowed, lasting_bars, read_fence, set_fence
from failover.sites.site import Site, SiteUnclear, client_let_through
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.name_patterns import NamePattern
from runtime.configuration.topic_sets import DEFAULT_SET, TopicSet, flow_of_set, flow_of_sets
from runtime.coordination.witness import ActiveSite, WitnessGarbled, recover_remedy
from runtime.coordination.zookeeper import ZooKeeper
from runtime.rights.creation import OF_CLUSTER, OF_MOVING
from runtime.topic_patterns import encode_patterns, moving_patterns
from wire.acls import WILDCARD, ResourceType
from wire.net.rights import PREFIXED, Right
from wire.values import frozen


class FenceStanding(Enum):
    """What one set has of a site's fence."""

    OPEN = auto()
    CLOSED = auto()
    MOVING = auto()
    """A promotion of it is under way, and has closed or opened the site, or has not yet."""


def standing_at(active: ActiveSite, site: str) -> FenceStanding:
    """Return what a set has of a site's fence, by its active site."""
    if active.moving_to is not None and site in {active.site, active.moving_to}:
        return FenceStanding.MOVING
    return FenceStanding.OPEN if active.site == site else FenceStanding.CLOSED


def closing_flows(configuration: Configuration, site: str) -> list[FlowConfig]:
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


@frozen
class SiteParts:
    """The parts that the other sets have of one site's fence. Pure."""

    configuration: Configuration
    """Of the set whose part is to change."""
    site: str
    actives: Mapping[str, ActiveSite]
    """What the witness says of all other sets, by name."""

    @property
    def others(self) -> Mapping[str, FenceStanding]:
        """Return what each other set has of this site's fence."""
        return {name: standing_at(active, self.site) for name, active in self.actives.items()}

    def joined(self, own: Fence, now: Fence, topics: Collection[str]) -> Fence:
        """Return the site's whole fence in which this set's part is `own`.

        `now` is the fence that was read there, and `topics` are all that the site has. Closed are
        the topics of closed sets, made behind the fence or not, and what it closed of them before.
        """
        whole, sets, others = self.configuration.whole, self.configuration.whole.sets, self.others
        if not others:
            return own
        closed = self._closed_by_others(now)
        stays = {
            topic
            for topic in now.topics
            if others.get(sets.set_of(topic), FenceStanding.OPEN) is not FenceStanding.OPEN
        }
        due = {
            topic
            for topic in topics
            if sets.set_of(topic) in closed and any(flow.moves(topic) for flow in whole.flows)
        }
        if not (closed or stays):
            return replace(own, bars=self._harmless(own.bars, closed, own))
        flow, named = self._flow(), {*closed, *(self._own_name if own.patterns else ())}
        all_bars = own.bars.union(self._bars(closed), self._bars_of_moving(now))
        through = client_let_through(source=self.site, target=self._other_site)
        return replace(
            own,
            topics=tuple(sorted({*own.topics, *stays, *due})),
            allowed_clients=tuple(sorted({*own.allowed_clients, through})),
            patterns=encode_patterns(moving_patterns(flow_of_sets(flow, sets, named), self.site)),
            sends_away=whole.failover.sends_clients_away,
            bars=self._harmless(all_bars, closed, own),
        )

    def own_part(self, now: Fence) -> Fence:
        """Return what of a fence is this set's; bars that are no other set's count as this one's.

        The patterns of a fence are those of all closed sets and are left as they are.
        """
        if not self.actives:
            return now
        of_others = self._bars(self._closed_by_others(now)) | self._bars_of_moving(now)
        return replace(
            now,
            topics=tuple(filter(self.configuration.has, now.topics)),
            bars=now.bars - (of_others - self.lasting_bars(now)),
        )

    def lasting_bars(self, now: Fence) -> frozenset[Right]:
        """Return the bars of this set that stay while it is closed here, with no other shut out."""
        wanted = lasting_bars(closing_flows(self.configuration, self.site), self.site)
        open_sets = self._open_sets(self._closed_by_others(now))
        return wanted - _shutting_out(wanted, open_sets)

    @property
    def _own_name(self) -> tuple[str]:
        name = self.configuration.topic_set
        assert name is not None, "the whole file has no part of a fence"
        return (name,)

    @property
    def _other_site(self) -> str:
        [other] = self.configuration.clusters.keys() - {self.site}
        return other

    def _flow(self) -> FlowConfig:
        """Return a flow of the whole file; with sets all of them have the same topics."""
        return self.configuration.whole.flows[0]

    def _closed_by_others(self, now: Fence) -> frozenset[str]:
        """Return the other sets that are closed here, or that a promotion has closed by now."""
        sets = self.configuration.whole.sets
        fenced = {sets.set_of(topic) for topic in now.topics}
        closes = {
            name
            for name in self.others
            if closing_flows(self.configuration.of_set(name), self.site)
        }
        return frozenset(
            name
            for name, standing in self.others.items()
            if (standing is FenceStanding.CLOSED and name in closes)
            or (standing is FenceStanding.MOVING and name in fenced)
        )

    def _bars(self, names: Collection[str]) -> frozenset[Right]:
        sets, flow = self.configuration.whole.sets, self._flow()
        of_sets = [flow_of_set(flow, sets, name) for name in sorted(names)]
        return lasting_bars(of_sets, self.site)

    def _bars_of_moving(self, now: Fence) -> frozenset[Right]:
        """Return what keeps all topics from being made while another set moves away from here."""
        is_moving = FenceStanding.MOVING in self.others.values() and OF_CLUSTER in now.bars
        return OF_MOVING if is_moving else frozenset()

    def _open_sets(self, closed: Collection[str]) -> list[TopicSet]:
        """Return the named sets, but this one, that are open here."""
        return [
            one
            for one in self.configuration.whole.sets.named
            if one.name in self.actives and one.name not in closed
        ]

    def _harmless(
        self, wanted: frozenset[Right], closed: Collection[str], own: Fence
    ) -> frozenset[Right]:
        """Return these bars without those that would shut out a set that is open here.

        All topics are kept from being made while a promotion moves one set away.
        """
        moving = OF_MOVING if OF_CLUSTER in wanted else frozenset()
        open_sets = self._open_sets(closed)
        if not (own.topics or own.patterns or own.bars):
            open_sets += [
                one
                for one in self.configuration.whole.sets.named
                if one.name == self.configuration.topic_set
            ]
        return wanted - (_shutting_out(wanted, open_sets) - moving)


def _shutting_out(wanted: Iterable[Right], open_sets: Iterable[TopicSet]) -> frozenset[Right]:
    """Return those bars that keep some topic of these sets from being made."""
    taken = [pattern for one in open_sets for pattern in one.patterns]
    return frozenset(
        bar
        for bar in wanted
        if bar.kind == ResourceType.TOPIC
        and any(pattern.overlaps(_names_of(bar)) for pattern in taken)
    )


def _names_of(bar: Right) -> NamePattern:
    """Return the names of topics that a bar keeps from being made."""
    if bar.name == WILDCARD:
        return NamePattern("", is_prefix=True)
    return NamePattern(bar.name, is_prefix=bar.pattern == PREFIXED)


@frozen
class SharedFence:
    """The fence of each site, changed for one set. All raise NetworkFault."""

    configuration: Configuration
    """Of that set."""
    zookeeper: ZooKeeper

    async def whole(self, site: Site, own: Fence) -> Fence:
        """Return the whole fence that a site is to have and can have, with `own` for our part."""
        parts = await self._parts(site)
        if parts.actives:
            now = await read_fence(site.cluster)
            view = await site.cluster.metadata(refresh=True)
            topics = [one.name for one in view.topics.values() if not one.is_internal]
            own = parts.joined(own, now, topics)
        return await as_allowed(site.cluster, own) if own.bars else own

    async def set_part(self, site: Site, own: Fence) -> None:
        """Set the fence of a site, with `own` for our part of it."""
        await set_fence(site.cluster, await self.whole(site, own))

    async def read_part(self, site: Site) -> Fence:
        """Return our part of the fence that is set."""
        return (await self._parts(site)).own_part(await read_fence(site.cluster))

    async def _parts(self, site: Site) -> SiteParts:
        try:
            actives = await read_other_sets(self.configuration, self.zookeeper)
        except WitnessGarbled as fault:
            raise SiteUnclear(f"what others close on {site.name} is not known: {fault}") from fault
        return SiteParts(configuration=self.configuration, site=site.name, actives=actives)


async def read_other_sets(
    configuration: Configuration, zookeeper: ZooKeeper
) -> Mapping[str, ActiveSite]:
    """Return which site is active for each other set of the file, by its name.

    Raises WitnessGarbled where the witness does not say it, and what reading it raises.
    """
    others = [name for name in configuration.whole.sets.names if name != configuration.topic_set]
    if configuration.topic_set is None:
        assert others == [DEFAULT_SET], "a file with sets is taken set by set"
        return {}
    await zookeeper.sync()  # a server that lags behind would open what was closed a moment ago
    found: dict[str, ActiveSite] = {}
    for name in others:
        path = configuration.of_set(name).coordination.paths.active
        node = await zookeeper.get(path)
        if node is None:
            raise WitnessGarbled(
                f"witness: {path}: nothing says which site is active for {name}"
                f"{recover_remedy(name)}"
            )
        found[name] = ActiveSite.decode(node.data, topic_set=name)
    return found
