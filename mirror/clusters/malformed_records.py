"""Records of internal topics that make no sense: counted, said once, left out."""

import logging
from typing import Final

from mirror.state.measurements import FlowMeasurements

_LOG = logging.getLogger(__name__)


class OddRecords:
    """The malformed records of one topic; `mirror_malformed_records` is their number."""

    def __init__(self, measurements: FlowMeasurements, topic: str) -> None:
        self._measurements = measurements
        self._topic: Final = topic
        self._is_said = False

    def note(self, what: str) -> None:
        """Count one; only the first is logged, for a foreign writer may write millions."""
        self._measurements.count_malformed(self._topic)
        level = logging.DEBUG if self._is_said else logging.WARNING
        self._is_said = True
        _LOG.log(level, "%s: %s: left out; further ones are counted only", self._topic, what)
