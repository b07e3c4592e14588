"""Tell a topic that was mirrored from another one of the same name. Pure."""

from typing import Final
from uuid import UUID

NO_ID: Final = UUID(int=0)


def is_recreated(known: UUID | None, seen: UUID) -> bool:
    """Whether the source topic is another one than was mirrored; brokers without ids never say."""
    return known is not None and NO_ID not in {known, seen} and known != seen
