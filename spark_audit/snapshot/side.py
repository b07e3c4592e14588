"""The part of a flow's logs that a record is from."""

from enum import Enum


class Side(Enum):
    """The part of a flow's logs that a row is from."""

    SOURCE = "source"
    TARGET = "target"
    NATIVE = "native"
    """Records of the target's applications: behind the seal of a promotion, or among the rest."""
    RETURNED = "returned"
    """Records that the other direction brought to the source."""
