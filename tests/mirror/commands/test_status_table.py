"""What `mirror status` prints."""

from mirror.commands.status_table import render
from tests.mirror.commands.status_reports import REPORT

PAGE = """\
flow dc1->dc2: running for 1 m 0 s
  fault: discovery: dc1 away
  warning: mirrored without segment.bytes=9: a, b, c, d, e and 2 more (the target says: too small)
  2 partitions (1 retention overrun, 1 streaming), lag 0 records and unknown for 1 partitions
  81,234 records/s, 83.0 MB/s; 1,200,000 records left, level in 14 s at this rate

  TOPIC   PART  STATE              SINCE  SOURCE END  MIRRORED  TARGET END  LAG  LAG TIME  REASON
  orders     0  streaming           30 s         500       500         480    0       0 s  \
3 offsets left out
  orders     1  retention overrun  1.0 s           ?         ?           ?    ?         ?  \
9 offsets lost; source begins at 9
  retention overrun: delete the target topic
  group positions are polled: no right to read __consumer_offsets

  GROUP    TOPIC   PART  SOURCE POS  LAG  TARGET POS  LAG  STATE
  billing  orders     0         490   10         470   10  settled
"""


def test_the_page_shows_states_lags_and_positions_and_marks_the_unknown() -> None:
    assert render(REPORT) == PAGE


def test_a_switch_that_would_refuse_somebody_is_a_warning() -> None:
    told = "2 principals would be refused on dc2: `mirror check` names them"
    [flow] = REPORT["flows"]
    rule = "dc2 does not get the DENY of READ to User:* of topic t"
    refused = {**flow, "refused_after_switch": told, "withheld_rights": [rule]}
    page = render({**REPORT, "flows": [refused]})  # type: ignore[list-item]
    assert f"  warning: {told}\n  warning: {rule}\n" in page


def test_the_walker_of_what_is_fetched_is_named() -> None:
    [flow] = REPORT["flows"]
    page = render({**REPORT, "flows": [{**flow, "walked_by": "Python (switched off)"}]})
    assert "  what is fetched is walked by Python (switched off)\n" in page
