"""Errors that nobody has foreseen: how they are told, and how a task outlasts them."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from runtime.process.fault_note import FaultNote

_LOG = logging.getLogger(__name__)

AGAIN_S: Final = 1.0
"""A task that an error has ended begins anew after this long."""


def described(fault: Exception) -> str:
    """Return type and text of an error, and of the first in a group."""
    first: BaseException = fault
    while isinstance(first, ExceptionGroup):
        first = first.exceptions[0]
    return f"{type(first).__name__}: {first}".removesuffix(": ")


async def keep_at_work(
    task: Callable[[], Awaitable[None]], fault: FaultNote, where: str | None = None
) -> None:
    """Run a task; begin it anew when an error ends it, which ``fault`` shows meanwhile.

    The fault stands at ``where``, or at the task's name. Work on single partitions, groups and
    topics is contained by itself: this is for the rest.
    """
    what = where or str(getattr(task, "__qualname__", repr(task)))
    while True:
        try:
            await task()
        except Exception as unforeseen:  # noqa: BLE001 - what is unforeseen has no type
            fault.note(f"{what} failed and begins anew: {described(unforeseen)}", what)
            _LOG.exception("%s failed and begins anew", what)
            await trio.sleep(AGAIN_S)
        else:
            return
