"""Where a leader's log begins and ends, asked by a follower that is outside of it."""

from typing import Final

from wire.errors import ErrorCode
from wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from wire.net.connection import Connection
from wire.values import frozen

_LATEST: Final = -1
_EARLIEST: Final = -2


@frozen
class LeaderBounds:
    """The leader's log."""

    log_start_offset: int
    log_end_offset: int


async def ask_bounds(
    connection: Connection, broker_id: int, topic: str, index: int, leader_epoch: int
) -> LeaderBounds | None:
    """Return the bounds of a leader's log, None if it does not lead in this epoch (any more).

    Raises NetworkFault.
    """
    found: list[int] = []
    for timestamp in (_EARLIEST, _LATEST):
        response = await connection.request(
            ListOffsetsRequest(
                replica_id=broker_id,
                topics=(
                    ListOffsetsTopic(
                        name=topic,
                        partitions=(
                            ListOffsetsPartition(
                                partition_index=index,
                                current_leader_epoch=leader_epoch,
                                timestamp=timestamp,
                            ),
                        ),
                    ),
                ),
            )
        )
        (answer,) = response.topics[0].partitions
        if answer.error_code != ErrorCode.NONE:
            return None
        found.append(answer.offset)
    return LeaderBounds(log_start_offset=found[0], log_end_offset=found[1])
