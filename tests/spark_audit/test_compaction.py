"""Compacted topics: what the cleaners took, on either side and at any time, is no finding.

And no more than that: the last record of a key is what they keep.
"""

import pytest

from tests.spark_audit.audits import BehindPromotion, Everything
from tests.spark_audit.planted.compaction import SCENARIOS


def test_what_a_cleaner_takes_while_the_audit_runs_is_no_finding(everything: Everything) -> None:
    planted = everything.cleaners_at_work
    assert everything.audited.of(planted) == planted.expected


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_gap_explains_only_what_a_cleaner_may_have_taken(
    everything: Everything, name: str
) -> None:
    assert everything.audited.findings[name] == everything.cleaned.expected[name]


def test_behind_a_promotion_what_applications_wrote_supersedes_on_the_target_only(
    behind_promotion: BehindPromotion,
) -> None:
    planted = behind_promotion.cleaned
    assert behind_promotion.audited.of(planted) == planted.expected


def test_where_both_sites_write_what_came_from_the_other_supersedes_too(
    everything: Everything,
) -> None:
    assert everything.audited.of(everything.both_ways) == everything.both_ways.expected
