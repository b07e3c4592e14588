"""How long ago the last promotion ended, for the cool-down behind it. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from failover.journal.journal import Journal
from failover.journal.steps import PromotionState
from wire.values import frozen


def last_word_ms(journal: Journal) -> int:
    """Return the latest time that a journal has, by the wall clock of whoever wrote it."""
    steps = (step.ended_ms or step.started_ms for step in journal.steps)
    return max([journal.started_ms, journal.switched_ms or 0, *steps])


@frozen
class Clocks:
    """What time it is for this machine and for the witness, and when that wrote the last journal.

    The witness's clock is that of the server that leads: it may change with it.
    """

    wall_ms: int
    witness_ms: int
    journal_ms: int
    """0 where there is no journal."""

    def least_since_ms(self, then_ms: int) -> int:
        """Return how long ago it was what a journal says of itself, or its node: the least."""
        return min(self.wall_ms, self.witness_ms) - max(then_ms, self.journal_ms)


@dataclass(slots=True)
class LastPromotion:
    """Knows since when which promotion is the last, by one clock; others' clocks count less.

    Of one that ended while this process looked on, its own clock tells. Of an earlier one the
    witness's clock and those of both machines do, and what the other voters have counted, and the
    shortest time counts: a clock that is ahead or behind ends no cool-down early, nor do those of
    this machine and the witness together while a voter runs that saw it end. Where it comes out
    below zero, and where the journal is lost, the time counts from the first look.
    """

    _last: tuple[int, PromotionState | None] | None = None
    _seen_ms: int = 0
    _before_ms: int = 0
    """How long it had been over when it was seen first."""

    def see(
        self,
        journals: Sequence[Journal],
        active_epoch: int,
        *,
        clocks: Clocks,
        now_ms: int,
        counted_ms: Iterable[int] = (),
    ) -> int | None:
        """Return how long ago the last promotion ended; None where there was none.

        `counted_ms` is what each of the other voters says of it in this epoch.
        """
        last = max(journals, key=lambda journal: journal.epoch, default=None)
        epoch = max(active_epoch, 0 if last is None else last.epoch)
        present = (epoch, None if last is None else last.state)
        if present != self._last:
            is_first_look = self._last is None
            self._last, self._seen_ms, self._before_ms = present, now_ms, 0
            if is_first_look and last is not None and last.epoch == epoch:
                least_ms = clocks.least_since_ms(last_word_ms(last))
                self._before_ms = max(0, min((least_ms, *counted_ms)))
        return None if epoch == 0 else self._before_ms + now_ms - self._seen_ms
