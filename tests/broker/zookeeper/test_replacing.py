"""A predecessor's registration may vanish while it is replaced: that is for trying again."""

from typing import Any, cast

import pytest

from broker.listeners import Listener
from broker.zookeeper import tree
from broker.zookeeper.store import ClusterStore
from runtime.coordination.zookeeper import NoNode, ZNode, ZooKeeper, ZooKeeperUnreachable

LISTENER = Listener(name="PLAINTEXT", host="127.0.0.1", port=9092)


class Vanishing:
    """A tree whose registration of a dead session goes when it is about to be replaced."""

    session_id = 2

    async def get(self, path: str) -> ZNode | None:
        if path != tree.broker_path(1):
            return None
        data = tree.encode_broker([LISTENER], None, 1_000)
        return ZNode(data=data, version=0, created_zxid=5, modified_zxid=5, ephemeral_owner=1)

    async def transaction(self, _: Any) -> None:
        raise NoNode(tree.broker_path(1))


async def test_a_registration_that_vanishes_meanwhile_is_for_trying_again() -> None:
    store = ClusterStore(cast("ZooKeeper", Vanishing()))
    with pytest.raises(ZooKeeperUnreachable, match="vanished while it was being replaced"):
        await store.register(1, [LISTENER], None, now_ms=2_000)
