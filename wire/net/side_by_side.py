"""The same question about many things, side by side: from afar each takes a round trip or more."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import trio

from wire.net.errors import NetworkFault, RequestRefused

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


async def ask_each(
    keys: Iterable[K], ask: Callable[[K], Awaitable[V]], *, at_once: int
) -> dict[K, V]:
    """Ask about each key, ``at_once`` of them at a time; return the answers by key.

    Raises the first NetworkFault, as itself and not in a group, once all have been asked about.
    """
    answers: dict[K, V] = {}
    faults: list[NetworkFault] = []
    limit = trio.CapacityLimiter(at_once)

    async def ask_about(key: K) -> None:
        async with limit:
            try:
                answers[key] = await ask(key)
            except NetworkFault as fault:
                faults.append(fault)  # the nursery would hide its type in a group

    async with trio.open_nursery() as nursery:
        for key in keys:
            nursery.start_soon(ask_about, key)
    if faults:
        raise faults[0]
    return answers


async def ask_both(
    first: Callable[[], Awaitable[K]], second: Callable[[], Awaitable[V]]
) -> tuple[K, V]:
    """Ask two questions side by side, as of two clusters; return both answers.

    Raises what a question raises, as itself and not in a group, once both have ended: of two faults
    the first question's.
    """
    firsts: list[K] = []
    seconds: list[V] = []
    faults: dict[int, Exception] = {}

    async def ask(place: int, question: Callable[[], Awaitable[T]], answers: list[T]) -> None:
        try:
            answers.append(await question())
        except Exception as fault:  # noqa: BLE001 - raised again below, outside the nursery
            faults[place] = fault

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, 0, first, firsts)
        nursery.start_soon(ask, 1, second, seconds)
    if faults:
        raise faults[min(faults)]
    return firsts[0], seconds[0]


def or_refusal(
    ask: Callable[[K], Awaitable[V]],
) -> Callable[[K], Awaitable[V | RequestRefused]]:
    """Return the question with a broker's refusal as an answer: it concerns its key alone."""

    async def asked(key: K) -> V | RequestRefused:
        try:
            return await ask(key)
        except RequestRefused as refused:
            return refused

    return asked
