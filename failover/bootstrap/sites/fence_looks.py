"""What a fence by rights closes at a site, asked of its brokers when a client meets a denial.

The witness says that a promotion leads away from a site, and so that it may be closed. That is not
all: an old copy of the witness knows of no promotion, whose fence stands; `failover serve` opens an
active site that was left closed some time later; and a broker that has not heard yet that a fence
was lifted denies on.
"""

from collections.abc import Mapping
from typing import Final

import trio

from failover.bootstrap.sites.shared_look import SharedLook
from failover.sites.fence_rights import closed_anywhere
from runtime.configuration.config import Configuration
from runtime.process.fault_note import FaultNote
from wire.net import Cluster, NetworkFault
from wire.net.rights import CREATE, Right

LOOK_TIMEOUT_S: Final = 3.0


class FenceLooks:
    """Looks at the fences of both sites, for what moves with this set of topics."""

    def __init__(self, configuration: Configuration, clusters: Mapping[str, Cluster]) -> None:
        self._configuration = configuration
        self._clusters = clusters
        self._looks = SharedLook(self._look)
        self._fault = FaultNote("fences of the active site")

    async def closed(self, site: str) -> frozenset[Right] | None:
        """Return what a fence of ours denies everybody there now, None where that is not known."""
        return await self._looks.at(site)

    async def _look(self, site: str) -> frozenset[Right] | None:
        why = f"no answer within {LOOK_TIMEOUT_S:g} s"
        with trio.move_on_after(LOOK_TIMEOUT_S):
            try:
                found = await closed_anywhere(self._clusters[site])
            except NetworkFault as fault:
                why = str(fault)
            else:
                self._fault.clear(site)
                has = self._configuration.has
                return frozenset(one for one in found if one.operation == CREATE or has(one.name))
        self._fault.note(
            f"{site}: {why}: whether a fence denies what clients are denied is not known, so they"
            " are told to try again; this program's user needs DESCRIBE on the cluster",
            site,
        )
        return None
