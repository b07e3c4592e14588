"""The retries of a partition that could not go on: back-off and refusals. Pure."""

from dataclasses import dataclass
from typing import Final

from mirror.state.partition_state import ASKED_AGAIN_MS, PartitionState

FIRST_BACKOFF_MS: Final = 100
MAX_BACKOFF_MS: Final = 5_000
MOST_DOUBLINGS: Final = 10
REFUSED_AGAIN_MS: Final = 15_000
"""A sequence that is wrong is refused at least so often: tries are MAX_BACKOFF_MS apart."""
FIRST_ALONE_MS: Final = 600_000
"""A batch that was refused for one record is behind by then, as a rule."""
MOST_ALONE_MS: Final = 86_400_000
"""A limit of the target's topic that joined batches pass is met again each time."""


def backoff_ms(failures: int) -> int:
    """Return how long to wait after so many failures without any progress in between."""
    return min(FIRST_BACKOFF_MS * (1 << min(failures, MOST_DOUBLINGS)), MAX_BACKOFF_MS)


@dataclass(slots=True)
class Joins:
    """The joins of one partition. A refusal costs an interruption, so tries become ever rarer."""

    _alone_until_ms: int = 0
    _alone_ms: int = FIRST_ALONE_MS

    def refuse(self, now_ms: int) -> None:
        """Note that the target has refused batches that had been joined."""
        self._alone_until_ms = now_ms + self._alone_ms
        self._alone_ms = min(2 * self._alone_ms, MOST_ALONE_MS)

    def are_allowed(self, now_ms: int) -> bool:
        """Whether small batches may go on as one."""
        return now_ms >= self._alone_until_ms


class Retries:
    """The trouble that one partition has had without any progress since."""

    __slots__ = (
        "_refused",
        "_sequence_refused_ms",
        "at_ms",
        "failures",
        "joins",
        "sequence_refused_since_ms",
    )

    def __init__(self) -> None:
        self.at_ms = 0
        """Before this the partition is not tried again."""
        self.failures = 0
        self._refused: tuple[PartitionState, int] | None = None
        """The stop that has lasted, over tries that failed again, and since when."""
        self.sequence_refused_since_ms: int | None = None
        """Since when the target has called our sequences wrong."""
        self._sequence_refused_ms = 0
        self.joins: Final = Joins()

    def fail(self) -> None:
        """Count a failure."""
        self.failures += 1

    def put_off(self, now_ms: int) -> None:
        """Try again after a while, which grows with the failures."""
        self.at_ms = now_ms + backoff_ms(self.failures)

    def try_now(self, now_ms: int) -> None:
        """Try again at once, and count on."""
        self.at_ms = now_ms

    def wait_no_longer(self, now_ms: int) -> None:
        """Try again now if it is not due before: what it waits for may have come."""
        self.at_ms = min(self.at_ms, now_ms)

    def begin_anew(self, now_ms: int) -> None:
        """Try again at once, as if nothing had failed."""
        self.failures = 0
        self.at_ms = now_ms

    def ask_again(self, state: PartitionState, now_ms: int) -> int:
        """Try again after a while what has stopped the partition; return since when it has."""
        if self._refused is None or self._refused[0] is not state:
            self._refused = (state, now_ms)
        self.at_ms = now_ms + ASKED_AGAIN_MS[state]
        return self._refused[1]

    def refuse_sequence(self, now_ms: int) -> int:
        """Count that the target calls our sequence wrong; return for how long it has."""
        since_ms = self.sequence_refused_since_ms
        if since_ms is None or now_ms - self._sequence_refused_ms > REFUSED_AGAIN_MS:
            self.sequence_refused_since_ms = since_ms = now_ms
        self._sequence_refused_ms = now_ms
        return now_ms - since_ms

    def succeed(self) -> None:
        """Forget the trouble: the target has taken a batch."""
        self.failures = 0
        self.sequence_refused_since_ms = None
        self._refused = None
