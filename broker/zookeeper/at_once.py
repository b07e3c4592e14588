"""Many requests to ZooKeeper at once: one after the other each costs a round trip."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

import trio

AT_ONCE: Final = 64
"""Requests in flight; ZooKeeper answers them in order on one connection."""

K = TypeVar("K")
V = TypeVar("V")


async def all_of(keys: Iterable[K], read: Callable[[K], Awaitable[V | None]]) -> dict[K, V]:
    """Do it for every key, some at once; return what is there, in the order of the keys."""
    found: dict[K, V] = {}
    wanted = list(keys)
    limit = trio.CapacityLimiter(AT_ONCE)

    async def one(key: K) -> None:
        async with limit:
            value = await read(key)
        if value is not None:
            found[key] = value

    try:
        async with trio.open_nursery() as nursery:
            for key in wanted:
                nursery.start_soon(one, key)
    except* Exception as group:  # noqa: BLE001 - one fault is as good as any other, see `first_of`
        raise first_of(group) from None
    return {key: found[key] for key in wanted if key in found}


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return one exception of a group, so that callers catch it by its type."""
    leaf: BaseException = group
    while isinstance(leaf, BaseExceptionGroup):
        leaf = leaf.exceptions[0]
    return leaf
