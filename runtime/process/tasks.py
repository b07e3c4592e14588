"""Background tasks of a `with` block that let the block's own exception leave as it was."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def background_tasks() -> AsyncIterator[trio.Nursery]:
    """Open a nursery whose tasks are cancelled when the block ends.

    A plain nursery would wrap what the block raises into an ExceptionGroup, although only the block
    failed; callers could then not catch it by its type. A failing task still ends the block with
    the nursery's group.
    """
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            yield nursery
        except Exception as error:  # noqa: BLE001 - raised again below, outside the nursery
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
