"""Mirrors that are far behind: what may still arrive is counted, and not looked at."""

import pytest

from tests.spark_audit.audits import Everything
from tests.spark_audit.planted.backlogs import BACKLOG, BEHIND, GONE_ON, LOST_BEFORE

pytestmark = pytest.mark.integration


def test_of_a_backlog_only_the_beginning_is_read_unless_the_end_before_it_differs(
    everything: Everything,
) -> None:
    audited, read = everything.audited, everything.read
    assert audited.of(everything.backlogs) == everything.backlogs.expected
    in_flight = audited.numbers("in_flight", BEHIND, LOST_BEFORE, GONE_ON)
    assert in_flight == (BACKLOG, BACKLOG, BACKLOG - 7_001)
    assert 0 < read[BEHIND] < BACKLOG < min(read[LOST_BEFORE], read[GONE_ON])
