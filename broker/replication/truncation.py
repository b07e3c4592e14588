"""Where two logs part, told by leader epochs. Pure (KIP-101, KIP-279, KIP-595).

    leader      |--3--|--4-----|--7---        epoch 4 ended here at 9
    follower    |--3--|--4--------|--5-       asks from 14, having read epoch 5 last
                               ^ 9: the leader answers (4, 9), the follower truncates to it

High watermarks never decide: a follower's is older than its leader's, so what lies above it may be
committed.
"""

from typing import Final, Protocol

from wire.values import frozen

UNKNOWN: Final = -1


class Epochs(Protocol):
    """A log, as far as this module looks at it."""

    @property
    def log_end_offset(self) -> int: ...

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (the largest epoch not above `epoch`, where it ended); (-1, -1) when unknown."""


@frozen
class Divergence:
    """The leader's word: our common history reaches at most to the end of this epoch there."""

    epoch: int
    end_offset: int


class UnknownEpoch(Exception):
    """The leader cannot say where the epoch ended; the reader has to ask for its bounds."""


def find_divergence(log: Epochs, fetch_offset: int, last_fetched_epoch: int) -> Divergence | None:
    """Return where a reader left this log's history, None while it has not. Raises UnknownEpoch.

    `last_fetched_epoch` is that of the last record before `fetch_offset`, -1 when not told.
    """
    if last_fetched_epoch == UNKNOWN:
        return None
    epoch, end_offset = log.end_offset_for_epoch(last_fetched_epoch)
    if epoch == UNKNOWN:
        raise UnknownEpoch(f"epoch {last_fetched_epoch}")
    if epoch < last_fetched_epoch or end_offset < fetch_offset:
        return Divergence(epoch=epoch, end_offset=end_offset)
    return None


def truncation_offset(log: Epochs, divergence: Divergence) -> int:
    """Return where a follower cuts its log; it may have to ask once more afterwards.

    It does when the leader named an epoch that the follower has not: then it cuts to the end of the
    largest epoch below, which is one epoch nearer to the common history each time.
    """
    epoch, end_offset = log.end_offset_for_epoch(divergence.epoch)
    if epoch == UNKNOWN:
        end_offset = divergence.end_offset
    elif epoch == divergence.epoch:
        end_offset = min(end_offset, divergence.end_offset)
    return min(end_offset, log.log_end_offset)
