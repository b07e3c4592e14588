"""What keeps a rehearsal from beginning: all of it, each with what to do."""

from dataclasses import replace

from failover.automatic.hold import hold_here
from failover.journal.journal import Journal
from failover.journal.steps import PromotionKind
from failover.rehearsal.obstacles import RehearsalView, find_obstacles
from runtime.configuration.topic_sets import REHEARSAL_SET

VIEW = RehearsalView(
    site="dc2",
    home="dc1",
    active={"default": "dc1", REHEARSAL_SET: "dc1"},
    unfinished={},
    silent={},
    unmirrored=(),
)
LEFT = Journal(epoch=4, site="dc2", source="dc1", kind=PromotionKind.PLANNED, started_ms=0)


def test_nothing_is_in_the_way_of_a_rehearsal_wherever_an_earlier_one_has_left_its_set() -> None:
    assert list(find_obstacles(VIEW)) == []
    left = replace(VIEW, active={"default": "dc1", REHEARSAL_SET: "dc2"})
    assert list(find_obstacles(replace(left, unfinished={REHEARSAL_SET: LEFT}))) == []


def test_all_obstacles_are_told_together() -> None:
    view = replace(
        VIEW,
        hold=hold_here("failover hold", "the line is being moved", 0),
        silent={"dc2": "no answer within 3 s"},
        unfinished={"default": LEFT},
        unmirrored=("rehearsal:dc1->dc2",),
    )
    told = list(find_obstacles(view))
    assert [line.split(":")[0] for line in told[1:]] == [
        "dc2 does not answer",
        "the planned promotion of dc2 (set default, epoch 4) is unfinished",
        "nobody runs the flow rehearsal",
    ]
    assert "the line is being moved: `failover release`" in told[0]


def test_a_site_that_has_all_applications_already_is_not_rehearsed() -> None:
    there = {"default": "dc2", REHEARSAL_SET: "dc2"}
    [told] = find_obstacles(replace(VIEW, active=there))
    assert "`failover rehearse dc1`" in told
    both = {**there, "payments": "dc1"}
    assert list(find_obstacles(replace(VIEW, active=both))) == []
