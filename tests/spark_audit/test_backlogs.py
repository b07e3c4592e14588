"""Mirrors that are far behind: what may still arrive is counted, and not looked at."""

from spark_audit.snapshot.side import Side
from tests.spark_audit.audits import Everything
from tests.spark_audit.planted.backlogs import (
    AGED,
    BACKLOG,
    BEHIND,
    GONE_ON,
    LOST_BEFORE,
    LOST_BEHIND_AGED,
)


def test_of_a_backlog_only_the_beginning_is_read_unless_the_end_before_it_differs(
    everything: Everything,
) -> None:
    audited = everything.audited
    read = {topic: n for (side, topic), n in audited.read.items() if side is Side.SOURCE}
    assert audited.of(everything.backlogs) == everything.backlogs.expected
    in_flight = audited.numbers("in_flight", BEHIND, LOST_BEFORE, GONE_ON)
    assert in_flight == (BACKLOG, BACKLOG, BACKLOG - 7_001)
    assert 0 < read[BEHIND] < BACKLOG < min(read[LOST_BEFORE], read[GONE_ON])


def test_of_what_retention_took_on_one_side_only_the_edge_is_read_unless_it_differs(
    everything: Everything,
) -> None:
    audited = everything.audited
    for topic, side in AGED.items():
        assert audited.findings[topic] == set()
        assert audited.numbers("explained", topic) == (BACKLOG,)
        assert audited.read[side, topic] < 5_000
    for topic, side in LOST_BEHIND_AGED.items():
        assert audited.findings[topic] == everything.backlogs.expected[topic]
        assert audited.read[side, topic] > BACKLOG
