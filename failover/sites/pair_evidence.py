"""What a promotion writes about the pair on both clusters, before and behind the switch.

Before the switch each cluster carries that a promotion is under way: if the witness is lost between
the switch and the new evidence, nobody takes the old site for the active one. Each writing has a
number that the witness holds first, so an old copy of the witness is known by its lower one.
"""

from collections.abc import Mapping
from typing import Final

import trio

from failover.sites.site import Site, SiteUnclear, brief
from runtime.configuration.config import Configuration
from runtime.coordination.witness import Pair
from runtime.coordination.zookeeper import ZooKeeper
from runtime.pair.evidence_number import take_number
from runtime.pair.evidence_topic import write_evidence
from runtime.pair.opening import evidence_of, look_at_pair, make_pair
from runtime.process.clock import now_ms
from wire.net import NetworkFault

TIMEOUT_S: Final = 3.0
"""A lost site may keep quiet for longer; `failover serve` writes there when it is back."""
BESIDE_S: Final = 0.5
"""A site that need not say it is waited for so long where applications wait for the switch."""


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
        return await self._write(required, others_s=BESIDE_S, moving_to=site, moving_epoch=epoch)

    async def say_active(self) -> dict[str, str]:
        """Say on every cluster which site is active; return by site why it could not be said."""
        return await self._write(frozenset())

    async def require_writable(self, sites: frozenset[str]) -> None:
        """Say on these sites which one is active; raises NetworkFault where it cannot be said.

        A topic of evidence that would not keep it gets its settings.
        """
        await self._write(sites, only=sites)

    async def _write(
        self,
        required: frozenset[str],
        *,
        only: frozenset[str] | None = None,
        others_s: float = TIMEOUT_S,
        moving_to: str | None = None,
        moving_epoch: int | None = None,
    ) -> dict[str, str]:
        paths = self._configuration.coordination.paths
        active = await self._zookeeper.get(paths.active)
        if active is None:
            why = "the witness does not name an active site any more"
            if required:
                raise SiteUnclear(f"{', '.join(sorted(required))} took no evidence: {why}")
            return dict.fromkeys(self._sites, why)
        pair = await self._zookeeper.get(paths.pair)
        if pair is None:  # a witness of an earlier version, or one whose pair was garbled
            await self._make_pair()
            pair = await self._zookeeper.get(paths.pair)
            assert pair is not None, "it was made, here or elsewhere"
        evidence = evidence_of(
            self._configuration,
            Pair.decode(pair.data, topic_set=paths.topic_set),
            paths.read_active(active.data),
            number=await take_number(self._zookeeper, paths),
            moving_to=moving_to,
            moving_epoch=moving_epoch,
        )
        failed: dict[str, str] = {}
        faults: dict[str, NetworkFault] = {}

        async def write(name: str, site: Site) -> None:
            patience_s = TIMEOUT_S if name in required else others_s
            with trio.move_on_after(patience_s) as limit:
                try:
                    await write_evidence(
                        site.cluster, evidence, now_ms(), sets_right=only is not None
                    )
                except NetworkFault as fault:
                    failed[name], faults[name] = brief(fault), fault
            if limit.cancelled_caught:
                failed[name] = f"no answer within {patience_s:g} s"
                faults[name] = SiteUnclear(f"{name} took no evidence within {patience_s:g} s")

        async with trio.open_nursery() as nursery:
            for name, site in self._sites.items():
                if only is None or name in only:
                    nursery.start_soon(write, name, site)
        for name in sorted(required & faults.keys()):
            raise faults[name]
        return dict(sorted(failed.items()))

    async def _make_pair(self) -> None:
        """Make the pair from what the sites that answer carry: without it nothing is written."""
        clusters = {name: site.cluster for name, site in self._sites.items()}
        seen = await look_at_pair(self._configuration, self._zookeeper, clusters)
        await make_pair(self._zookeeper, seen)
