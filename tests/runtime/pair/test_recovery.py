"""What a witness is restored to, and where a person has to decide."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.coordination.witness import ActiveSite, Pair
from runtime.pair.evidence import (
    LARGEST_EPOCH,
    LARGEST_NUMBER,
    Agreed,
    Contradicted,
    Evidence,
    EvidenceGarbled,
    PairSeen,
    SiteSeen,
    decode_evidence,
    judge,
)
from runtime.pair.recovery import CannotRestore, NothingToRestore, Restore, decide_recovery

IDS = {"dc1": "id-1", "dc2": "id-2"}
PAIR = Pair(pair="p", clusters=IDS)
DC2 = Evidence(path="/dr", pair="p", clusters=IDS, active="dc2", epoch=4)
SILENT = SiteSeen(fault="no answer")


def wiped(dc1: SiteSeen, dc2: SiteSeen) -> PairSeen:
    return PairSeen(
        path="/dr",
        initial_active="dc1",
        active=None,
        pair=None,
        journals=(),
        sites={"dc1": dc1, "dc2": dc2},
    )


def site(name: str, evidence: Evidence | None) -> SiteSeen:
    return SiteSeen(cluster_id=IDS[name], evidence=evidence)


def why(seen: PairSeen, **decided: str) -> str:
    recovery = decide_recovery(seen, active=decided.get("active"))
    assert isinstance(recovery, CannotRestore), recovery
    return recovery.reason


def test_two_clusters_that_agree_restore_the_witness() -> None:
    recovery = decide_recovery(wiped(site("dc1", DC2), site("dc2", DC2)))
    assert recovery == Restore(pair=PAIR, active=ActiveSite(site="dc2", epoch=4), number=0)


def test_a_later_epoch_that_one_cluster_alone_says_is_for_a_person_to_decide() -> None:
    older = replace(DC2, active="dc1", epoch=3)
    seen = wiped(site("dc1", older), site("dc2", DC2))
    assert "active in epoch 4: dc1 says active dc1, epoch 3; decide" in why(seen)
    decided = decide_recovery(seen, active="dc2")
    assert decided == Restore(pair=PAIR, active=ActiveSite(site="dc2", epoch=5), number=0)


def test_what_one_cluster_says_and_the_other_does_not_is_for_a_person_to_decide() -> None:
    assert "in epoch 4: dc1 carries no evidence" in why(wiped(site("dc1", None), site("dc2", DC2)))


def test_an_old_copy_of_the_witness_is_overruled() -> None:
    seen = replace(
        wiped(site("dc1", DC2), site("dc2", DC2)), pair=PAIR, active=ActiveSite(site="dc1", epoch=3)
    )
    assert decide_recovery(seen) == Restore(
        pair=PAIR, active=ActiveSite(site="dc2", epoch=4), number=0
    )


def test_where_records_of_the_evidence_are_gone_a_person_names_the_active_site() -> None:
    lost = SiteSeen(cluster_id="id-1", has_lost_evidence=True)
    seen = wiped(lost, site("dc2", None))
    assert isinstance(judge(seen), Contradicted)
    assert "internal on dc1 has lost its records; decide which site is active" in why(seen)
    assert decide_recovery(seen, active="dc1") == Restore(
        pair=Pair(pair="", clusters=IDS), active=ActiveSite(site="dc1", epoch=1), number=0
    )


def test_while_a_cluster_is_silent_a_person_names_the_active_site() -> None:
    seen = wiped(SILENT, site("dc2", DC2))
    assert "dc1 (no answer) does not tell" in why(seen)
    decided = decide_recovery(seen, active="dc2")
    assert decided == Restore(pair=PAIR, active=ActiveSite(site="dc2", epoch=5), number=0)


def test_a_promotion_that_was_under_way_is_for_a_person_to_decide() -> None:
    moving = replace(DC2, moving_to="dc1", moving_epoch=5)
    seen = wiped(site("dc1", moving), site("dc2", DC2))
    assert "a promotion of dc1 (epoch 5) was under way" in why(seen)
    decided = decide_recovery(seen, active="dc1")
    assert decided == Restore(pair=PAIR, active=ActiveSite(site="dc1", epoch=6), number=0)


def test_two_active_sites_in_one_epoch_are_for_a_person_to_decide() -> None:
    seen = wiped(site("dc1", replace(DC2, active="dc1")), site("dc2", DC2))
    assert "epoch 4 has two active sites, dc1 and dc2" in why(seen)


def test_evidence_of_two_pairs_is_for_a_person_to_decide() -> None:
    seen = wiped(site("dc1", replace(DC2, pair="q")), site("dc2", DC2))
    assert "different pairs" in why(seen)


def test_without_any_evidence_there_is_nothing_to_restore() -> None:
    recovery = decide_recovery(wiped(site("dc1", None), site("dc2", None)))
    assert isinstance(recovery, NothingToRestore)


def test_no_site_is_made_active_that_carries_nothing_and_hides_the_other() -> None:
    assert "no cluster that answers" in why(wiped(SILENT, site("dc2", None)), active="dc2")


def test_swapped_addresses_are_set_right_first() -> None:
    seen = wiped(
        SiteSeen(cluster_id="id-2", evidence=DC2), SiteSeen(cluster_id="id-1", evidence=DC2)
    )
    assert "leads to" in why(seen, active="dc2")


@pytest.mark.parametrize("pair", [PAIR, None])
def test_a_cluster_that_was_set_up_anew_is_taken_over_by_name(pair: Pair | None) -> None:
    active = None if pair is None else ActiveSite(site="dc2", epoch=4)
    seen = replace(wiped(SiteSeen(cluster_id="id-9"), site("dc2", DC2)), pair=pair, active=active)
    assert "dc1 is another cluster than before" in why(seen)
    recovery = decide_recovery(seen, replaced=["dc1"])
    ids = {"dc1": "id-9", "dc2": "id-2"}
    assert recovery == Restore(
        pair=Pair(pair="p", clusters=ids), active=ActiveSite(site="dc2", epoch=4), number=0
    )


def test_an_unknown_site_is_refused() -> None:
    assert "unknown site dc3" in why(wiped(site("dc1", DC2), site("dc2", DC2)), active="dc3")


def test_a_site_that_the_file_has_not_is_not_made_active_without_a_person() -> None:
    other = replace(DC2, clusters={"dc1": "id-1", "dc3": "id-3"}, active="dc3")
    assert "of another than this" in why(wiped(site("dc1", other), site("dc2", None)))


def test_what_is_restored_can_be_read_whatever_a_cluster_carries() -> None:
    latest = replace(DC2, epoch=LARGEST_EPOCH - 2)
    recovery = decide_recovery(wiped(site("dc1", latest), site("dc2", DC2)), active="dc1")
    assert isinstance(recovery, Restore)
    assert ActiveSite.decode(recovery.active.encode()) == recovery.active
    restored = replace(DC2, epoch=recovery.active.epoch)
    assert decode_evidence(*restored.encode()) == restored
    with pytest.raises(EvidenceGarbled):
        decode_evidence(*replace(DC2, epoch=LARGEST_EPOCH).encode())


def test_a_restored_witness_goes_on_behind_the_highest_number() -> None:
    seen = wiped(site("dc1", replace(DC2, number=8)), site("dc2", replace(DC2, number=7)))
    recovery = decide_recovery(replace(seen, pair=PAIR, active=ActiveSite(site="dc2", epoch=4)))
    assert recovery == Restore(pair=PAIR, active=ActiveSite(site="dc2", epoch=4), number=8)


forged = st.builds(
    Evidence,
    path=st.just("/dr"),
    pair=st.sampled_from(["p", "q"]),
    clusters=st.just(IDS),
    active=st.sampled_from(["dc1", "dc2", "dc3"]),
    epoch=st.integers(0, LARGEST_EPOCH - 1) | st.integers(2, 6),
    moving_to=st.none() | st.just("dc2"),
    moving_epoch=st.none() | st.integers(2, 6),
    number=st.integers(0, LARGEST_NUMBER) | st.integers(0, 9),
)
TRUE = ActiveSite(site="dc1", epoch=4)
HONEST = replace(DC2, active="dc1", number=5)


@given(
    forged,
    st.sampled_from([None, TRUE, ActiveSite(site="dc1", epoch=3)]),
    st.sampled_from([HONEST, None, replace(HONEST, epoch=3)]),
    st.sampled_from(["dc1", "dc2"]),
)
def test_what_a_stranger_writes_on_one_cluster_makes_no_site_active(
    one: Evidence, witness: ActiveSite | None, other: Evidence | None, where: str
) -> None:
    """It may keep everybody from acting; who acts then is decided by a person."""
    sites = {name: site(name, one if name == where else other) for name in IDS}
    seen = replace(
        wiped(sites["dc1"], sites["dc2"]),
        pair=None if witness is None else PAIR,
        active=witness,
        number=0 if witness is None else 5,
    )
    if isinstance(judge(seen), Agreed):
        assert witness is not None
    recovery = decide_recovery(seen)
    if isinstance(recovery, Restore):
        assert recovery.active.site == "dc1"
        assert recovery.active in {witness, TRUE, ActiveSite(site="dc1", epoch=3)}


def test_an_epoch_that_nothing_can_follow_is_named_and_nothing_is_written() -> None:
    last = replace(DC2, epoch=LARGEST_EPOCH - 1)
    seen = wiped(site("dc1", last), site("dc2", DC2))
    assert f"epoch {LARGEST_EPOCH - 1} is the last there is" in why(seen, active="dc1")
