"""Which part of a flow's logs a record is from."""

from enum import Enum


class Side(Enum):
    """Which part of a flow's logs a row is from."""

    SOURCE = "source"
    TARGET = "target"
    NATIVE = "native"
    """What applications wrote to the target: behind the seal of a promotion, or among the rest."""
    RETURNED = "returned"
    """What the other direction brought to the source."""
