"""Makes the node below which a cluster is, where several share an ensemble."""

from dataclasses import replace

from broker.zookeeper.address import chroot_of, servers_of
from runtime.coordination.zookeeper import ZooKeeper, open_zookeeper


async def make_chroot(zookeeper: ZooKeeper, address: str, timeout_ms: int) -> None:
    """Make the chroot and its parents where a session that has it sees no root.

    They are left open, because the clusters of a parent may have logins of their own; the brokers
    close the chroot itself when they take over what is below it. Raises ZooKeeperFault.
    """
    chroot = chroot_of(address)
    if not chroot or await zookeeper.exists("/"):
        return
    async with open_zookeeper(
        servers_of(address),
        session_timeout_ms=zookeeper.session_timeout_ms,
        start_timeout_ms=timeout_ms,
        access=replace(zookeeper.access, leaves_open=True),
    ) as of_all:
        await of_all.ensure(chroot)
