"""`failover secure`: give every node of the witness to our login alone.

A witness that was used without a login, or with an earlier password, has nodes that others may
write; one of before `coordination.auth.applications` has nodes that applications may not read. It
shows them first and changes rights with `--write` only. May be repeated.
"""

from collections.abc import Callable
from contextlib import suppress

from runtime.config import Configuration
from runtime.pair.opening import make_shared
from runtime.witness import WitnessPaths
from runtime.witness_rights import TooManyNodes, find_foreign_rights
from runtime.witness_session import open_witness
from runtime.zookeeper import NoNode, NotAllowed


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
    paths = WitnessPaths(root=coordination.path)
    show(f"login       {login.identity}")
    count, refused = 0, 0
    async with open_witness(coordination) as zookeeper:
        try:
            async for foreign in find_foreign_rights(
                zookeeper, coordination.access, coordination.path
            ):
                count += 1
                show(str(foreign))
                if write:
                    try:
                        with suppress(NoNode):  # an ephemeral node that has gone
                            await zookeeper.set_rights(foreign.path)
                    except NotAllowed:
                        refused += 1
        except TooManyNodes as error:
            raise CannotSecure(str(error)) from error
        if write and not refused and await zookeeper.exists(coordination.path):
            await make_shared(zookeeper, paths)
    if refused:
        raise CannotSecure(
            f"{refused} nodes are another login's: name its password as"
            " coordination.auth.previous_password, or its user and password as the login, and"
            " repeat"
        )
    if write or not count:
        done = f"{count} nodes were given to our login"
        show(done if count else "all nodes have the rights that they should")
        return True
    show(f"{count} nodes have other rights than they should; nothing was changed: --write does")
    return False
