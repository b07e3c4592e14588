"""What one canary has sent, and what has come of it. Pure; times are of one clock, in ms.

Records of one partition arrive in their order: one that was acknowledged, and that a later one has
overtaken, is lost. What was not acknowledged may arrive or not. Behind a fault of the reader it is
not known of what lay in between, and those count neither as arrived nor as lost.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class _Sent:
    sent_ms: int
    is_acknowledged: bool = False


@dataclass(slots=True)
class CanaryLedger:
    """The counts of one canary, and the records that are on their way."""

    sent: int = 0
    refused: int = 0
    """Not acknowledged: nobody knows whether they were appended."""
    arrived: int = 0
    lost: int = 0
    out_of_order: int = 0
    """Arrived again, or behind a later one."""
    unknown: int = 0
    """Acknowledged, and could not be looked for."""
    _on_way: dict[int, _Sent] = field(default_factory=dict)
    _refused: set[int] = field(default_factory=set)

    def send(self, now_ms: int) -> int:
        """Return the number of a record that is sent now."""
        number = self.sent
        self.sent += 1
        self._on_way[number] = _Sent(now_ms)
        return number

    def acknowledge(self, number: int) -> None:
        """Count a record that is on the source for good."""
        sent = self._on_way.get(number)
        if sent is not None:  # else it has arrived already
            sent.is_acknowledged = True

    def refuse(self, number: int) -> None:
        """Give up a record whose fate nobody has told."""
        self.refused += 1
        if self._on_way.pop(number, None) is not None:
            self._refused.add(number)

    def arrive(self, number: int, now_ms: int) -> int | None:
        """Count an arrival; return how long it took, None for one that was not waited for."""
        sent = self._on_way.pop(number, None)
        if sent is None:
            if number in self._refused:
                self._refused.discard(number)
            else:
                self.out_of_order += 1
            return None
        self.arrived += 1
        overtaken = [one for one in self._on_way if one < number]
        self.lost += sum(self._on_way.pop(one).is_acknowledged for one in overtaken)
        self._refused = {one for one in self._refused if one > number}
        return max(0, now_ms - sent.sent_ms)

    def forget(self) -> None:
        """Give up what is on its way: the reader does not know what it has not seen."""
        self.unknown += sum(one.is_acknowledged for one in self._on_way.values())
        self._on_way.clear()

    def give_up(self) -> None:
        """Count as lost what was acknowledged and will not come any more."""
        self.lost += sum(one.is_acknowledged for one in self._on_way.values())
        self._on_way.clear()

    @property
    def is_waiting(self) -> bool:
        """Whether an acknowledged record is on its way."""
        return any(one.is_acknowledged for one in self._on_way.values())

    def oldest_ms(self, now_ms: int) -> int:
        """Return for how long the oldest acknowledged record has been on its way; 0 for none."""
        sent = (one.sent_ms for one in self._on_way.values() if one.is_acknowledged)
        return max(0, now_ms - min(sent, default=now_ms))
