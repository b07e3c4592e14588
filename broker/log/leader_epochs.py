"""Where each leader epoch began in one log; kept in `leader-epoch-checkpoint`.

    epochs  (0, 0) (3, 120) (4, 250)     log end 300
             |--0--|--3-----|--4-----|   epoch 3 ended at 250; what was epoch 2 ended at 120

Followers truncate by it (KIP-101): the leader says where an epoch ended in its log.
"""

from pathlib import Path

from broker.log import checkpoints

UNKNOWN = -1


class LeaderEpochs:
    """The epochs of one log, oldest first, both columns growing. Raises OSError when it saves."""

    __slots__ = ("_entries", "_path")

    def __init__(self, path: Path) -> None:
        """Read the checkpoint. Raises StorageError for a damaged one."""
        self._path = path
        self._entries = list(checkpoints.read_epochs(path))

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> int:
        """The newest epoch, -1 for none."""
        return self._entries[-1][0] if self._entries else UNKNOWN

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`, unless it is known or an older one.

        An epoch of which nothing was written is forgotten when the next one starts at its place.
        """
        if epoch <= self.latest:
            return
        while self._entries and self._entries[-1][1] >= start_offset:
            self._entries.pop()
        self._entries.append((epoch, start_offset))
        self._save()

    def end_offset(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return (the largest epoch not above `epoch`, where it ended), (-1, -1) when unknown.

        Kafka's OffsetsForLeaderEpoch: for the newest epoch that is the log's end; for one older
        than all known there is no answer.
        """
        if epoch == UNKNOWN or not self._entries or epoch > self.latest:
            return (UNKNOWN, UNKNOWN)
        if epoch == self.latest:
            return (epoch, log_end_offset)
        floor = UNKNOWN
        for known, start in self._entries:
            if known > epoch:
                # An epoch before all known ended, as far as this log tells, where the first begins.
                return (epoch if floor == UNKNOWN else floor, start)
            floor = known
        return (UNKNOWN, UNKNOWN)

    def truncate_from(self, offset: int) -> None:
        """Forget the epochs that began at or behind `offset`."""
        kept = [entry for entry in self._entries if entry[1] < offset]
        self._replace(kept)

    def truncate_before(self, offset: int) -> None:
        """Forget the epochs that ended before `offset`; the one in force there now starts there."""
        later = [entry for entry in self._entries if entry[1] > offset]
        earlier = [entry for entry in self._entries if entry[1] <= offset]
        if earlier:
            later.insert(0, (earlier[-1][0], offset))
        self._replace(later)

    def _replace(self, entries: list[tuple[int, int]]) -> None:
        if entries != self._entries:
            self._entries = entries
            self._save()

    def _save(self) -> None:
        checkpoints.write_epochs(self._path, self._entries)
