"""The leadership of one partition, as the controller says it."""

from typing import Final
from uuid import UUID

from wire.values import frozen

NO_LEADER: Final = -1


@frozen
class Leadership:
    """One partition's state, as LeaderAndIsr and AlterPartition tell it."""

    topic: str
    index: int
    topic_id: UUID
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int
    """Counts the changes of this state; a leader that changes the ISR names the one it knew."""

    def is_older_than(self, known: "Leadership") -> bool:
        """Return whether a newer state than this is known: every change counts one up."""
        return (self.leader_epoch, self.partition_epoch) < (
            known.leader_epoch,
            known.partition_epoch,
        )
