"""Where the brokers of each site are, for connections that name one of them."""

import random
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import trio

from failover.bootstrap.sites.shared_look import SharedLook
from runtime.configuration.config import ClusterConfig
from wire.net import Cluster, NetworkFault
from wire.net.transport import Address

BELIEVED_FOR_S: Final = 60.0
LOOK_TIMEOUT_S: Final = 3.0


class BrokerAddresses:
    """By site and node id; learned from answers that pass, and asked for where none has passed."""

    def __init__(
        self, configured: Mapping[str, ClusterConfig], clusters: Mapping[str, Cluster]
    ) -> None:
        self._configured = configured
        self._clusters = clusters
        self._known: dict[str, dict[int, tuple[Address, float]]] = {}
        """Each with the time at which it was learned."""
        self._asked = SharedLook(self._look)

    def learn(self, site: str, brokers: Mapping[int, Address]) -> None:
        """Take over what a broker of the site has said of all."""
        if brokers:
            now = trio.current_time()
            self._known[site] = {node: (address, now) for node, address in brokers.items()}

    def forget(self, site: str) -> None:
        """Ask again: a broker was not where it was said to be."""
        self._known.pop(site, None)

    async def find(self, site: str, node_id: int | None) -> list[Address]:
        """Return where to connect to: the broker, or for none in particular all that are asked.

        So also for a broker that the site does not have: the client has it from another site, and
        whichever broker it reaches tells it of those that there are.
        """
        if node_id is not None:
            if (address := self._fresh(site, node_id)) is None:
                await self._asked.at(site)
                address, _ = self._known.get(site, {}).get(node_id, (None, 0.0))
            if address is not None:
                return [address]
        addresses = list(self._configured[site].bootstrap)
        random.shuffle(addresses)
        return addresses

    def _fresh(self, site: str, node_id: int) -> Address | None:
        address, learned_at = self._known.get(site, {}).get(node_id, (None, 0.0))
        return address if trio.current_time() - learned_at < BELIEVED_FOR_S else None

    async def _look(self, site: str) -> None:
        """Ask the site; what was known stays where it does not say."""
        with trio.move_on_after(LOOK_TIMEOUT_S), suppress(NetworkFault):
            view = await self._clusters[site].metadata((), refresh=True)
            self.learn(site, {node: each.address for node, each in view.brokers.items()})
