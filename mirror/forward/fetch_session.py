"""A fetch session with one source broker (KIP-227): only changes are asked for again. Pure.

    epoch 0   all partitions   ─► the broker opens a session, or answers without one
    epoch n   the changed ones ─► it answers for those of the session that have something to say

A broker forgets sessions when it has too many of them, restarts, or loses a turn: it then says so,
and everything is asked for anew. Lost answers end a session too, as nobody knows whether the broker
has gone on.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from wire.errors import ErrorCode
from wire.hot.fetch import Session, TopicKey, Wanted

PartitionKey: TypeAlias = tuple[TopicKey, int]

SESSION_LOST: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Errors of a whole answer that only say: ask for everything again."""
NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
_MAX_EPOCH: Final = 2**31 - 1


class Question(NamedTuple):
    """The content of the next request."""

    session: Session
    wanted: dict[TopicKey, list[Wanted]]
    forgotten: dict[TopicKey, list[int]]


class FetchSession:
    """The partitions that the broker knows we want; one request at a time."""

    __slots__ = ("_asked", "_epoch", "_session_id")

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._asked: dict[PartitionKey, Wanted | None] = {}
        """As the broker knows it; None where it is to be told again."""

    def ask(self, wanted: Mapping[PartitionKey, Wanted]) -> Question:
        """Return how to ask for exactly these partitions, in this order where all are new."""
        changed: dict[TopicKey, list[Wanted]] = {}
        forgotten: dict[TopicKey, list[int]] = {}
        asked = self._asked
        for partition_key, one in wanted.items():
            if asked.get(partition_key) != one:
                changed.setdefault(partition_key[0], []).append(one)
        for key, partition in asked.keys() - wanted.keys():
            forgotten.setdefault(key, []).append(partition)
        self._asked = dict(wanted)
        return Question(Session(self._session_id, self._epoch), changed, forgotten)

    @property
    def is_open(self) -> bool:
        """Whether the broker knows what it was asked for, as far as we know."""
        return self._epoch != FIRST_EPOCH

    def ask_some(self, updated: Mapping[PartitionKey, Wanted | None]) -> Question:
        """Return how to ask for these from now on, None for not at all, and the others as before.

        Only while the session is open.
        """
        changed: dict[TopicKey, list[Wanted]] = {}
        forgotten: dict[TopicKey, list[int]] = {}
        for (key, partition), one in updated.items():
            if one is None:
                if (key, partition) in self._asked:
                    del self._asked[key, partition]
                    forgotten.setdefault(key, []).append(partition)
            elif self._asked.get((key, partition)) != one:
                self._asked[key, partition] = one
                changed.setdefault(key, []).append(one)
        return Question(Session(self._session_id, self._epoch), changed, forgotten)

    def answered(self, session_id: int) -> None:
        """Go on after an answer without error, which names the session, 0 where there is none."""
        self._session_id = session_id
        if session_id == NO_SESSION:
            self.end()
            return
        self._epoch = 1 if self._epoch == _MAX_EPOCH else self._epoch + 1

    def end(self) -> None:
        """Ask for everything next time: the session is lost, or its fate is not known.

        The next request names it once more, so that a broker which still has it drops it.
        """
        self._epoch = FIRST_EPOCH
        self._asked = {}

    def say_again(self, partition_key: PartitionKey) -> None:
        """Name the partition next time even if nothing changes: its answer was not used."""
        if partition_key in self._asked:
            self._asked[partition_key] = None
