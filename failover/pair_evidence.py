"""What a promotion writes about the pair on both clusters, before and behind the switch.

Before the switch each cluster carries that a promotion is under way: if the witness is lost between
the switch and the new evidence, nobody takes the old site for the active one.
"""

from collections.abc import Mapping
from typing import Final

import trio

from failover.site import Site, SiteUnclear, brief
from runtime.clock import now_ms
from runtime.config import Configuration
from runtime.pair.evidence_topic import write_evidence
from runtime.pair.opening import evidence_of
from runtime.witness import ActiveSite, Pair, WitnessPaths
from runtime.zookeeper import ZooKeeper
from wire.net import NetworkFault

TIMEOUT_S: Final = 3.0
"""A lost site may keep quiet for longer; `failover serve` writes there when it is back."""


class PairEvidence:
    """Writes evidence of what the witness says at that moment."""

    def __init__(
        self, configuration: Configuration, zookeeper: ZooKeeper, sites: Mapping[str, Site]
    ) -> None:
        self._configuration = configuration
        self._zookeeper = zookeeper
        self._sites = sites

    async def say_moving(self, site: str, epoch: int, required: frozenset[str]) -> dict[str, str]:
        """Say on every cluster that a promotion of `site` is under way.

        Return by site why it could not be said there; raises NetworkFault for a required one.
        """
        return await self._write(required, moving_to=site, moving_epoch=epoch)

    async def say_active(self) -> dict[str, str]:
        """Say on every cluster which site is active; return by site why it could not be said."""
        return await self._write(frozenset())

    async def require_writable(self, sites: frozenset[str]) -> None:
        """Say on these sites which one is active; raises NetworkFault where it cannot be said."""
        await self._write(sites, only=sites)

    async def _write(
        self,
        required: frozenset[str],
        *,
        only: frozenset[str] | None = None,
        moving_to: str | None = None,
        moving_epoch: int | None = None,
    ) -> dict[str, str]:
        paths = WitnessPaths(root=self._configuration.coordination.path)
        active = await self._zookeeper.get(paths.active)
        pair = await self._zookeeper.get(paths.pair)
        if active is None or pair is None:
            return dict.fromkeys(self._sites, "the witness does not know the pair yet")
        evidence = evidence_of(
            self._configuration,
            Pair.decode(pair.data),
            ActiveSite.decode(active.data),
            moving_to=moving_to,
            moving_epoch=moving_epoch,
        )
        failed: dict[str, str] = {}
        for name, site in sorted(self._sites.items()):
            if only is not None and name not in only:
                continue
            try:
                with trio.fail_after(TIMEOUT_S):
                    await write_evidence(site.cluster, evidence, now_ms())
            except trio.TooSlowError:
                if name in required:
                    raise SiteUnclear(f"{name} took no evidence within {TIMEOUT_S:g} s") from None
                failed[name] = f"no answer within {TIMEOUT_S:g} s"
            except NetworkFault as fault:
                if name in required:
                    raise
                failed[name] = brief(fault)
        return failed
