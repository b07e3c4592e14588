"""What contradicts the witness, and what the evidence looks like as a record."""

import json
from dataclasses import replace
from uuid import UUID

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
    EvidenceUnknown,
    FirstStart,
    Judgement,
    PairSeen,
    Patterns,
    SiteSeen,
    decode_evidence,
    judge,
)

IDS = {"dc1": "id-1", "dc2": "id-2"}
EVIDENCE = Evidence(path="/dr", pair="p", clusters=IDS, active="dc1", epoch=3)
PAIR = Pair(pair="p", clusters=IDS)
DC1 = ActiveSite(site="dc1", epoch=3)

DC1_SEEN = SiteSeen(cluster_id="id-1", evidence=EVIDENCE)
DC2_SEEN = SiteSeen(cluster_id="id-2", evidence=EVIDENCE)

names = st.text(min_size=1, max_size=20)
epochs = st.integers(0, LARGEST_EPOCH - 1)
patterns = st.builds(
    Patterns,
    include=st.lists(names, max_size=3).map(tuple),
    exclude=st.lists(names, max_size=3).map(tuple),
)


def seen(
    *,
    active: ActiveSite | None = DC1,
    pair: Pair | None = PAIR,
    journals: tuple[int, ...] = (),
    dc1: SiteSeen = DC1_SEEN,
    dc2: SiteSeen = DC2_SEEN,
) -> PairSeen:
    return PairSeen(
        path="/dr",
        initial_active="dc1",
        active=active,
        pair=pair,
        journals=journals,
        sites={"dc1": dc1, "dc2": dc2},
    )


def site(name: str, evidence: Evidence | None = None, **more: str) -> SiteSeen:
    return SiteSeen(cluster_id=more.get("cluster_id", IDS[name]), evidence=evidence)


def reason(judgement: Judgement) -> str:
    assert isinstance(judgement, Contradicted), judgement
    return judgement.reason


@given(
    st.builds(
        Evidence,
        path=names,
        pair=names,
        clusters=st.dictionaries(names, names, max_size=3),
        active=names,
        epoch=epochs,
        moving_to=st.none() | names,
        moving_epoch=st.none() | epochs,
        number=st.integers(0, LARGEST_NUMBER),
        topics=st.dictionaries(names, patterns, max_size=2),
    )
)
def test_evidence_is_read_back_as_it_was_written(evidence: Evidence) -> None:
    assert decode_evidence(*evidence.encode()) == evidence


@given(st.binary(max_size=200))
def test_foreign_bytes_are_no_evidence(value: bytes) -> None:
    with pytest.raises(EvidenceGarbled):
        decode_evidence(b"/dr dc1 dc2", value)


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": -1},
        {"epoch": True},
        {"epoch": 10**400},
        {"epoch": "3"},
        {"clusters": {"dc1": 1}},
        {"clusters": []},
        {"format": 2},
        {"topics": {"dc1->dc2": {"include": [1], "exclude": []}}},
        {"path": "/other"},
        {"number": -1},
        {"number": LARGEST_NUMBER + 1},
        {"number": None},
    ],
)
def test_evidence_with_a_wrong_field_is_garbled(change: dict[str, object]) -> None:
    key, value = EVIDENCE.encode()
    with pytest.raises(EvidenceGarbled):
        decode_evidence(key, json.dumps({**json.loads(value), **change}).encode())


def test_deeply_nested_json_is_garbled() -> None:
    with pytest.raises(EvidenceGarbled):
        decode_evidence(b"/dr dc1 dc2", b"[" * 60_000)


def test_a_pair_whose_evidence_says_what_the_witness_says_is_agreed() -> None:
    assert judge(seen()) == Agreed()


def test_nothing_anywhere_is_a_first_start() -> None:
    judgement = judge(seen(active=None, pair=None, dc1=site("dc1"), dc2=site("dc2")))
    assert judgement == FirstStart()


def test_with_neither_witness_nor_an_answer_nobody_can_tell_a_first_start() -> None:
    judgement = judge(
        seen(active=None, pair=None, dc1=site("dc1"), dc2=SiteSeen(fault="no answer"))
    )
    assert isinstance(judgement, EvidenceUnknown)
    assert "dc2: no answer" in judgement.reason


SILENT = SiteSeen(fault="no answer")


@pytest.mark.parametrize(
    "without",
    [
        seen(active=None, pair=None, dc1=SILENT),
        seen(active=None, pair=None, dc2=SILENT),
        seen(active=None, pair=None),
    ],
)
def test_a_witness_without_memory_is_contradicted_by_either_cluster(without: PairSeen) -> None:
    judgement = judge(without)
    assert "active dc1, epoch 3" in reason(judgement)
    assert "failover recover" in reason(judgement)


def test_a_witness_that_knows_only_the_pair_is_contradicted() -> None:
    judgement = judge(seen(active=None, dc1=site("dc1"), dc2=site("dc2")))
    assert "not which site is active" in reason(judgement)


@given(witness=st.integers(0, 5), carried=st.integers(0, 5))
def test_a_witness_is_contradicted_by_evidence_of_a_later_epoch_only(
    witness: int, carried: int
) -> None:
    evidence = replace(EVIDENCE, epoch=carried)
    judgement = judge(
        seen(
            active=ActiveSite(site="dc1", epoch=witness), dc2=site("dc2", evidence), dc1=site("dc1")
        )
    )
    assert isinstance(judgement, Contradicted) == (carried > witness)


def test_two_active_sites_in_one_epoch_are_contradicted() -> None:
    judgement = judge(seen(dc2=site("dc2", replace(EVIDENCE, active="dc2"))))
    assert "in the same epoch" in reason(judgement)


def test_evidence_of_an_earlier_epoch_is_stale() -> None:
    assert judge(seen(dc1=site("dc1", replace(EVIDENCE, epoch=2)))) == Agreed(("dc1",))


def test_a_cluster_without_evidence_is_stale() -> None:
    assert judge(seen(dc2=site("dc2"))) == Agreed(("dc2",))


def test_a_cluster_that_does_not_answer_is_not_stale() -> None:
    assert judge(seen(dc1=SiteSeen(fault="no answer"))) == Agreed()


def test_a_promotion_that_the_witness_does_not_know_contradicts_it() -> None:
    moving = replace(EVIDENCE, moving_to="dc2", moving_epoch=4)
    assert "a promotion of dc2 (epoch 4)" in reason(judge(seen(dc2=site("dc2", moving))))


def test_a_promotion_that_the_witness_knows_contradicts_nothing() -> None:
    moving = replace(EVIDENCE, moving_to="dc2", moving_epoch=4)
    assert judge(seen(journals=(4,), dc2=site("dc2", moving))) == Agreed(("dc2",))


def test_evidence_of_an_earlier_version_has_no_number() -> None:
    key, value = EVIDENCE.encode()
    document = json.loads(value)
    del document["number"]
    assert decode_evidence(key, json.dumps(document).encode()) == EVIDENCE


@given(witness=st.integers(0, 5), dc1=st.integers(0, 5), dc2=st.integers(0, 5))
def test_an_old_copy_of_the_same_epoch_is_contradicted_by_what_was_written_since(
    witness: int, dc1: int, dc2: int
) -> None:
    """A promotion was begun since, or taken back, and the copy knows nothing of that."""
    judgement = judge(
        replace(
            seen(
                dc1=site("dc1", replace(EVIDENCE, number=dc1)),
                dc2=site("dc2", replace(EVIDENCE, number=dc2)),
            ),
            number=witness,
        )
    )
    if max(dc1, dc2) > witness:
        assert "it is an old copy" in reason(judgement)
        assert "failover recover" in reason(judgement)
    else:
        stale = [name for name, number in (("dc1", dc1), ("dc2", dc2)) if number < witness]
        assert judgement == Agreed(tuple(stale))


def test_evidence_of_another_pair_contradicts_the_witness() -> None:
    assert "another pair" in reason(judge(seen(dc2=site("dc2", replace(EVIDENCE, pair="q")))))


def test_one_cluster_under_two_names_is_refused() -> None:
    judgement = judge(seen(dc2=site("dc2", cluster_id="id-1")))
    assert "dc1 and dc2 are one cluster (id id-1)" in reason(judgement)


@pytest.mark.parametrize(
    ("dc1", "dc2", "is_one"),
    [({1, 2}, {2, 3}, True), ({1, 2}, {3}, False), ({1}, set(), False), (set(), set(), True)],
)
def test_two_clusters_that_were_formatted_with_one_id_are_two(
    dc1: set[int], dc2: set[int], is_one: bool
) -> None:
    judgement = judge(
        seen(
            active=None,
            pair=None,
            dc1=SiteSeen(cluster_id="id-1", topic_ids=frozenset(UUID(int=n) for n in dc1)),
            dc2=SiteSeen(cluster_id="id-1", topic_ids=frozenset(UUID(int=n) for n in dc2)),
        )
    )
    assert isinstance(judgement, Contradicted if is_one else FirstStart)


def test_swapped_addresses_are_refused() -> None:
    judgement = judge(seen(dc1=site("dc1", cluster_id="id-2"), dc2=site("dc2", cluster_id="id-1")))
    assert "the address of dc1 leads to dc2" in reason(judgement)


@pytest.mark.parametrize("pair", [PAIR, None])
def test_another_cluster_under_a_known_name_is_refused(pair: Pair | None) -> None:
    judgement = judge(seen(pair=pair, dc1=site("dc1", cluster_id="id-9")))
    assert "dc1 is another cluster than before: its id is id-9" in reason(judgement)
    assert "--replaced dc1" in reason(judgement)


def test_a_cluster_that_tells_no_id_is_not_held_against_one() -> None:
    silent = SiteSeen(cluster_id=None, evidence=EVIDENCE)
    assert judge(seen(dc1=silent)) == Agreed()


RIVAL = replace(
    EVIDENCE, path="/other", topics={"dc1->dc2": Patterns(include=("orders.*",), exclude=())}
)


@pytest.mark.parametrize(("active", "is_refused"), [("dc1", False), ("dc2", True)])
def test_a_first_start_beside_a_rival_is_refused_where_that_has_another_active_site(
    active: str, is_refused: bool
) -> None:
    rival = replace(RIVAL, active=active)
    judgement = judge(
        seen(
            active=None,
            pair=None,
            dc1=site("dc1"),
            dc2=SiteSeen(cluster_id="id-2", rivals={"orders": rival}),
        )
    )
    assert isinstance(judgement, Contradicted if is_refused else FirstStart)


@pytest.mark.parametrize(
    ("clusters", "active", "is_refused"),
    [
        ({"dc1": "id-2", "dc2": "id-1"}, "dc1", True),
        ({"dc1": "id-2", "dc2": "id-1"}, "dc2", False),
        ({"east": "id-1", "west": "id-2"}, "east", False),
        ({"east": "id-1", "west": "id-2"}, "west", True),
        ({"dc1": "id-1", "dc2": ""}, "dc1", False),
        ({"dc1": "id-2", "dc2": "id-2"}, "dc1", False),
    ],
)
def test_a_rivals_active_site_is_known_by_its_cluster_and_not_by_its_name(
    clusters: dict[str, str], active: str, is_refused: bool
) -> None:
    """A file with the two names swapped, and a path of its own, called the standby active."""
    rival = replace(RIVAL, active=active, clusters=clusters)
    silent = SiteSeen(cluster_id="id-2", rivals={"orders": rival})
    judgement = judge(seen(active=None, pair=None, dc1=site("dc1"), dc2=silent))
    assert isinstance(judgement, Contradicted if is_refused else FirstStart)


def test_a_record_with_half_a_character_is_garbled() -> None:
    document = {
        "format": 1,
        "path": "\ud800",
        "pair": "p",
        "clusters": IDS,
        "active": "dc1",
        "epoch": 3,
        "moving_to": None,
        "moving_epoch": None,
        "topics": {},
    }
    with pytest.raises(EvidenceGarbled):
        decode_evidence(b"/dr dc1 dc2", json.dumps(document).encode())


def test_a_cluster_whose_id_was_not_known_yet_is_no_other_cluster() -> None:
    """A witness that was restored while dc1 was away has no id of it."""
    pair = replace(PAIR, clusters={**IDS, "dc1": ""})
    stale = ("dc1", "dc2")
    assert judge(seen(pair=pair)) == Agreed(stale=stale)


def test_two_pairs_of_one_cluster_with_the_default_path_are_two() -> None:
    other = replace(EVIDENCE, clusters={"dc1": "id-1", "dc3": "id-3"})
    assert other.encode()[0] != EVIDENCE.encode()[0]
    assert not other.is_of("/dr", IDS)
    assert EVIDENCE.is_of("/dr", IDS)
