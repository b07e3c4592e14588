"""Copies the rights and quotas of applications from the source to the target, now and then."""

import logging
from dataclasses import replace
from typing import Final

import trio

from mirror.clusters.links import Links
from mirror.state.live_config import LiveConfig
from mirror.state.work_share import WorkShare
from runtime.configuration.flow_section import AclSync, FlowConfig
from runtime.configuration.topic_sets import names_of_set
from runtime.process.fault_note import FaultNote
from runtime.rights.outlook import Outlook, SiteRights, ask_site, look_ahead
from runtime.rights.quotas import QuotasGiven
from runtime.rights.refused import Seen
from runtime.rights.travelling import Travelled, rights_to_give
from runtime.rights.withheld import shutting_us_out, staying
from wire.net.client_quotas import client_quotas, entity_words, set_quotas
from wire.net.cluster import Cluster
from wire.net.errors import NetworkFault
from wire.net.operations import list_groups
from wire.net.rights import Right, RightsOff, give_rights

_LOG = logging.getLogger(__name__)

INTERVAL_S: Final = 30.0


class RightsUntold(NetworkFault):
    """A cluster does not tell its rights; the message says which one and why."""


class AclFollower:
    """The task of one flow."""

    def __init__(self, config: LiveConfig, share: WorkShare, links: Links) -> None:
        self._config = config
        self._share = share
        self._links = links
        self._told_off: str | None = None
        self.fault = FaultNote(f"{config.current.name}: rights")
        """The faults that keep rights from being copied."""
        self.outlook: Outlook | None = None
        """Who would be refused on the target after a switch; None before anybody has looked."""
        self._compared: object = None
        """What the outlook is of: with many entries it takes a moment to work it out."""
        self._quotas = QuotasGiven()

    async def run(self) -> None:
        """Compare every interval."""
        while True:
            if self._share.seen:
                await self._compare()
            await trio.sleep(INTERVAL_S if self._share.seen else 1.0)

    async def _compare(self) -> None:
        config = self._config.current
        try:
            if config.copies_quotas:
                await self.copy_quotas()
            if config.acls is not AclSync.OFF:
                await self.copy_rights()
        except RightsOff as off:
            self.fault.clear()
            if self._told_off != str(off):
                self._told_off = str(off)
                _LOG.info("%s: no rights are copied: %s", config.name, off)
        except NetworkFault as fault:
            self.fault.note(str(fault))
        else:
            self.fault.clear()

    async def copy_rights(self) -> None:
        """Give what the target lacks, once, and look who would be refused all the same.

        Raises RightsOff and NetworkFault.
        """
        config = self._config.current
        names = config.names
        topics = {
            topic: names.on_target(topic) for topic, _ in self._share.seen if config.mirrors(topic)
        }
        source = await ask_site(self._links.source_admin, config.source)
        target = await ask_site(self._links.target_admin, config.target)
        groups = await _groups(config, self._links.source_admin)
        travelled = Travelled(
            topics=topics,
            prefix=names.prefix,
            groups=groups,
            group_names=config.groups,
            names_of_set=names_of_set(config),
        )
        lacking = rights_to_give(_known(source), _known(target), travelled, config.acls)
        withheld_now = await shutting_us_out(
            lacking, _known(target), topics.values(), self._links.target_admin
        )
        withheld_now |= staying(_known(source), _known(target), config.acls)
        lacking = [right for right in lacking if right not in withheld_now]
        if lacking:
            await give_rights(self._links.target_admin, lacking)
            resources = ", ".join(sorted({right.name for right in lacking}))
            _LOG.info("%s: gave %d rights: %s", config.name, len(lacking), resources)
            target = replace(target, entries=_known(target).union(lacking))
        compared = source, target, topics, groups, withheld_now
        if compared != self._compared:
            self._compared = compared
            seen = Seen(topics=topics, groups=groups)
            outlook = look_ahead(source, target, seen)
            self.outlook = replace(outlook, withheld=tuple(sorted(withheld_now)))

    async def copy_quotas(self) -> None:
        """Set what the target lacks of the source's client quotas. Raises NetworkFault."""
        target = self._links.target_admin
        source = await client_quotas(self._links.source_admin)
        due = self._quotas.due(source, await client_quotas(target))
        if due:
            await set_quotas(target, due)
            entities = "; ".join(sorted(map(entity_words, due)))
            _LOG.info("%s: set client quotas: %s", self._config.current.name, entities)


async def _groups(config: FlowConfig, source: Cluster) -> frozenset[str]:
    """Return the groups seen on the source whose positions are kept in step."""
    return frozenset(filter(config.groups.matches, await list_groups(source)))


def _known(site: SiteRights) -> frozenset[Right]:
    """Return the site's entries. Raises RightsOff and RightsUntold."""
    if not isinstance(site.entries, str):
        return site.entries
    raise RightsOff(site.entries) if site.is_open else RightsUntold(site.entries)
