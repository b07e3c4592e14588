"""Against a real ZooKeeper: clusters below nodes of their own."""

from contextlib import AbstractAsyncContextManager

import pytest

from broker.zookeeper import tree
from broker.zookeeper.chroot import make_chroot
from broker.zookeeper.taking_over import NotOurCluster, take_over
from runtime.coordination.zookeeper import ZooKeeper, open_zookeeper
from runtime.coordination.zookeeper_access import Login, LoginMechanism, ZooKeeperAccess

pytestmark = pytest.mark.integration
TIMEOUT_MS = 10_000


def session(address: str, password: str) -> AbstractAsyncContextManager[ZooKeeper]:
    login = Login(mechanism=LoginMechanism.DIGEST, username="dr", password=password)
    access = ZooKeeperAccess(login=login)
    return open_zookeeper(address, session_timeout_ms=4_000, access=access)


async def test_clusters_with_logins_of_their_own_share_an_ensemble(empty_zookeeper: str) -> None:
    """Each makes its chroot, the first one their parent as well, and closes what is its own."""
    ours, theirs = f"{empty_zookeeper}/sites/dc1", f"{empty_zookeeper}/sites/dc2"
    async with session(ours, "right") as one, session(theirs, "new") as other:
        for cluster, address in ((one, ours), (other, theirs)):
            for _ in range(2):  # a broker that starts again finds all there
                await make_chroot(cluster, address, TIMEOUT_MS)
            await take_over(cluster)
            assert await cluster.children("/") == ["cluster"]
    async with session(ours, "new") as stranger:
        with pytest.raises(NotOurCluster, match="another login's"):
            await take_over(stranger)
    async with open_zookeeper(empty_zookeeper, session_timeout_ms=4_000) as of_all:
        assert await of_all.children("/sites") == ["dc1", "dc2"]


async def test_a_cluster_at_the_root_makes_nothing(empty_zookeeper: str) -> None:
    async with session(empty_zookeeper, "right") as cluster:
        await make_chroot(cluster, empty_zookeeper, TIMEOUT_MS)
        assert await cluster.children("/") == ["zookeeper"]
        assert not await cluster.exists(tree.OWNER)
