"""The part of a flow's logs that a record is from."""

from enum import Enum


class Side(Enum):
    """The part of a flow's logs that a row is from."""

    SOURCE = "source"
    TARGET = "target"
    NATIVE = "native"
    """What applications wrote to the target: behind the seal of a promotion, or among the rest."""
    RETURNED = "returned"
    """What the other direction brought to the source."""
