"""When a closed source's records that have not come are lost. Pure; times in ms of one clock."""

from dataclasses import dataclass


@dataclass(slots=True)
class Overdue:
    """Knows whether a look at the copy began long enough after the source was closed.

    A source that nobody knows to be closed may go on, and a copy that nobody could read may hold
    the records: both wait.
    """

    late_after_ms: int
    _closed_ms: int | None = None
    _looked_ms: int | None = None

    def see_source(self, takes_writes: bool | None, now_ms: int) -> None:  # noqa: FBT001
        """Hear whether the source takes writes now; None while that is not known."""
        if takes_writes is not False:
            self._closed_ms = None
        elif self._closed_ms is None:
            self._closed_ms = now_ms

    def see_copy(self, began_ms: int) -> None:
        """Hear when a look began that came to the end of the copy."""
        self._looked_ms = began_ms

    @property
    def is_over(self) -> bool:
        """Whether what has not been found until now will not come any more."""
        if self._closed_ms is None or self._looked_ms is None:
            return False
        return self._looked_ms - self._closed_ms > self.late_after_ms
