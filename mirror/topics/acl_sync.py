"""Copies rights to topics from the source to the target, now and then."""

import logging
from typing import Final

import trio

from mirror.clusters.links import Links
from mirror.state.live_config import LiveConfig
from mirror.state.work_share import WorkShare
from runtime.configuration.flow_section import AclSync
from runtime.process.fault_note import FaultNote
from runtime.travelling_rights import rights_to_give
from wire.net.cluster import Cluster
from wire.net.errors import NetworkFault, RequestRefused
from wire.net.topic_rights import RightsOff, TopicRight, give_rights, topic_rights

_LOG = logging.getLogger(__name__)

INTERVAL_S: Final = 30.0


class AclWatch:
    """The task of one flow."""

    def __init__(self, config: LiveConfig, share: WorkShare, links: Links) -> None:
        self._config = config
        self._share = share
        self._links = links
        self._told_off: str | None = None
        self.fault = FaultNote(f"{config.current.name}: rights")
        """The faults that keep rights from being copied."""

    async def run(self) -> None:
        """Compare every interval."""
        while True:
            if self._config.current.acls is not AclSync.OFF and self._share.seen:
                await self._compare()
            await trio.sleep(INTERVAL_S if self._share.seen else 1.0)

    async def _compare(self) -> None:
        try:
            await self.copy_rights()
        except RightsOff as off:
            self.fault.clear()
            if self._told_off != str(off):
                self._told_off = str(off)
                _LOG.info("%s: no rights are copied: %s", self._config.current.name, off)
        except NetworkFault as fault:
            self.fault.note(str(fault))
        else:
            self.fault.clear()

    async def copy_rights(self) -> None:
        """Give what the target lacks, once. Raises RightsOff and NetworkFault."""
        config = self._config.current
        names = config.names
        lacking = rights_to_give(
            await _rights(self._links.source_admin, config.source),
            await _rights(self._links.target_admin, config.target),
            mirrored={
                topic: names.on_target(topic)
                for topic, _ in self._share.seen
                if config.mirrors(topic)
            },
            sync=config.acls,
        )
        if lacking:
            await give_rights(self._links.target_admin, lacking)
            topics = ", ".join(sorted({right.topic for right in lacking}))
            _LOG.info("%s: gave %d rights to topics: %s", config.name, len(lacking), topics)


async def _rights(cluster: Cluster, site: str) -> set[TopicRight]:
    """Return the site's rights to topics; what is raised names it."""
    try:
        return await topic_rights(cluster)
    except RightsOff as off:
        raise RightsOff(f"{site} has {off}") from off
    except RequestRefused as refused:
        raise RequestRefused(f"{site}: to describe rights", refused.code) from refused
