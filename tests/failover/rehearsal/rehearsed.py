"""Rehearsals as values: one that has failed with all that there is to say, one that has begun."""

from failover.journal.commands_given import given_here
from failover.rehearsal.judgement import judge_load
from failover.rehearsal.outcome import Rehearsal, RehearsalState, RehearsedLeg, SetOutlook
from failover.rehearsal.seen import LoadSeen

REHEARSAL = Rehearsal(
    number=3,
    site="dc2",
    home="dc1",
    started_ms=5_000,
    ended_ms=9_000,
    given=given_here("failover rehearse dc2", 5_000),
    state=RehearsalState.FAILED,
    reason="1 records read again",
    legs=(
        RehearsedLeg(
            site="dc2",
            epoch=7,
            rto_ms=900,
            closed_ms=500,
            writers_ms=700,
            readers_ms=None,
            steps={"fence": 40, "drain": 100},
        ),
    ),
    load=judge_load(LoadSeen(run="r"), {}, {}),
    applications=(
        SetOutlook(set="default", site="dc2", ready=False, reason="behind"),
        SetOutlook(set="payments", site="dc1", ready=None, reason="nobody answers"),
        SetOutlook(set="stock", site="dc2", ready=True, reason=None),
    ),
)
BEGUN = Rehearsal(
    number=4, site="dc2", home="dc1", started_ms=0, given=given_here("failover rehearse dc2", 0)
)
