"""The speed of a flow, and the time until it has caught up. Pure."""

from collections import deque
from typing import Final

from wire.values import frozen

WINDOW_MS: Final = 30_000
LEAST_MS: Final = 2_000
"""Rates over less time than this say little."""


@frozen
class Sample:
    """Counters of one flow at one moment."""

    at_ms: int
    records: int
    bytes: int
    lag_records: int


@frozen
class Speed:
    """Rates over the last half minute; ``done_in_s`` is None when the lag does not shrink."""

    records_per_s: float
    bytes_per_s: float
    lag_records: int
    done_in_s: float | None


class Progress:
    """The samples of the last while."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque()

    def note(self, sample: Sample) -> None:
        """Take a sample, and forget those that are too old; after a jump of the clock, all."""
        samples = self._samples
        if samples and sample.at_ms < samples[-1].at_ms:
            samples.clear()
        samples.append(sample)
        while sample.at_ms - samples[0].at_ms > WINDOW_MS:
            samples.popleft()

    @property
    def speed(self) -> Speed | None:
        """The present speed; None before enough time has passed."""
        if not self._samples:
            return None
        first, last = self._samples[0], self._samples[-1]
        seconds = (last.at_ms - first.at_ms) / 1_000
        if seconds * 1_000 < LEAST_MS:
            return None
        # What comes in meanwhile is in the lag: it is how fast the lag shrinks that counts.
        shrinking = (first.lag_records - last.lag_records) / seconds
        done_in_s = 0.0 if last.lag_records == 0 else None
        if last.lag_records and shrinking > 0:
            done_in_s = last.lag_records / shrinking
        return Speed(
            records_per_s=(last.records - first.records) / seconds,
            bytes_per_s=(last.bytes - first.bytes) / seconds,
            lag_records=last.lag_records,
            done_in_s=done_in_s,
        )
