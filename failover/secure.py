"""`failover secure`: give every node of the witness to our login alone.

A witness that was used without a login, or with an earlier password, has nodes that others may
write; one of before `coordination.auth.applications` has nodes that applications may not read. It
shows them first and changes rights with `--write` only. May be repeated.
"""

from collections.abc import Callable
from contextlib import suppress

from runtime.configuration.config import Configuration
from runtime.configuration.coordination_section import CoordinationConfig
from runtime.configuration.witness_session import open_witness
from runtime.coordination.zookeeper import NoNode, NotAllowed, ZooKeeper
from runtime.pair.opening import make_shared
from runtime.pair.witness_rights import MOST_DEPTH, TooManyNodes, find_unexpected_rights


class CannotSecure(Exception):
    """Some nodes stay open to others; the message says why and what to do."""


async def secure(configuration: Configuration, *, write: bool, show: Callable[[str], None]) -> bool:
    """Show which rights are wrong, and with `write` set them; return whether nothing is left.

    Raises CannotSecure and ZooKeeperFault.
    """
    coordination = configuration.coordination
    login = coordination.access.login
    if login is None:
        raise CannotSecure(
            f"{configuration.file}: coordination.auth names no login, so every node is everybody's"
        )
    show(f"login       {login.identity}")
    async with open_witness(coordination) as zookeeper:
        root = coordination.path
        if not await _is_there(zookeeper, root):
            raise CannotSecure(
                f"witness {coordination.zookeeper} holds nothing at {root}: nobody has started the"
                " pair there, or coordination.path is another"
            )
        count = await _set_right(zookeeper, coordination, write=write, show=show)
        if write:
            await make_shared(zookeeper, coordination.paths)
    if write or not count:
        done = f"{count} nodes were given to our login"
        show(done if count else "all nodes have the rights that they should")
        return True
    show(f"{count} nodes have other rights than they should; nothing was changed: --write does")
    return False


async def _set_right(
    zookeeper: ZooKeeper,
    coordination: CoordinationConfig,
    *,
    write: bool,
    show: Callable[[str], None],
) -> int:
    """Return how many nodes had wrong rights; with `write` none has at the end.

    What lies below a node is seen only once its own rights are set, so it is looked again.
    """
    count = 0
    for _ in range(MOST_DEPTH):
        found = refused = 0
        try:
            async for wrong in find_unexpected_rights(
                zookeeper, coordination.access, coordination.path
            ):
                found += 1
                show(str(wrong))
                if write and not await _set(zookeeper, wrong.path):
                    refused += 1
        except TooManyNodes as error:
            raise CannotSecure(str(error)) from error
        count += found
        if refused:
            raise CannotSecure(
                f"{refused} nodes are another login's: name its password as"
                " coordination.auth.previous_password, or its user and password as the login, and"
                " repeat"
            )
        if not write or not found:
            return count
    raise CannotSecure(
        "a program goes on making nodes with other rights: restart it with this file"
    )


async def _set(zookeeper: ZooKeeper, path: str) -> bool:
    """Give a node the rights that it should have; return whether our login may."""
    try:
        with suppress(NoNode):  # an ephemeral node that has gone
            await zookeeper.set_rights(path)
    except NotAllowed:
        return False
    return True


async def _is_there(zookeeper: ZooKeeper, path: str) -> bool:
    try:
        return await zookeeper.exists(path)
    except NotAllowed:
        return True
