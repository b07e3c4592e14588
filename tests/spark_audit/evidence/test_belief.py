"""What is remembered of a log is believed only while the log must still be as it was."""

from dataclasses import replace
from uuid import UUID

import pytest

from spark_audit.evidence.belief import AskedLinks, Disbelief, considered, proven, wrong_cluster
from spark_audit.evidence.believing import believe, consider
from spark_audit.evidence.chain import Chain
from spark_audit.evidence.links import Link
from spark_audit.evidence.remembered import RememberedLog, RememberedSite
from spark_audit.scan.scan_rows import RowKind, ScanRow
from spark_audit.snapshot.bounds import LogBounds
from spark_audit.snapshot.origins import Brought
from spark_audit.snapshot.seals import CannotTell, Seal
from spark_audit.snapshot.side import Side
from tests.spark_audit.logs import Log, Pair, snapshot_of
from wire.errors import ErrorCode
from wire.net.partition_operations import EpochEnd
from wire.topic_partition import TopicPartition

TOPIC_ID = UUID(int=1)
PLACE = TopicPartition("orders", 0)


def _link(start: int, stop: int, epoch: int = 4) -> Link:
    row = ScanRow(RowKind.RANGE.value, start, stop, stop - start, bytes(16), leader_epoch=epoch)
    return Link(start, stop, (row,))


LINKS = Chain.of([_link(0, 10), _link(10, 25), _link(25, 30)])
LOG = RememberedLog(topic_id=TOPIC_ID, links=LINKS, night="20260101T000000Z")
NOW = LogBounds(start=0, stop=40, topic_id=TOPIC_ID, is_compacted=False)


def test_links_within_the_bounds_are_asked_about_by_their_last_epoch() -> None:
    assert considered("dc1", LOG, NOW, 0, 40) == AskedLinks(links=LINKS)
    assert considered("dc1", LOG, replace(NOW, start=5), 5, 40) == AskedLinks(links=LINKS[1:])
    assert considered("dc1", LOG, NOW, 0, 29) == AskedLinks(links=LINKS[:2])
    assert AskedLinks(links=LINKS).epoch == 4


@pytest.mark.parametrize(
    ("log", "now"),
    [
        (None, NOW),
        (LOG, replace(NOW, is_compacted=True)),
        (LOG, replace(NOW, start=29)),
        (replace(LOG, links=Chain.of([_link(0, 10, -1)])), NOW),
        (replace(LOG, topic_id=UUID(int=0)), replace(NOW, topic_id=UUID(int=0))),
    ],
    ids=["nothing known", "compacted", "all taken by retention", "no epochs", "no topic ids"],
)
def test_what_cannot_be_proven_is_read(log: RememberedLog | None, now: LogBounds) -> None:
    assert considered("dc1", log, now, now.start, now.stop) is None


def test_a_topic_that_was_made_again_is_named() -> None:
    found = considered("dc1", LOG, replace(NOW, topic_id=UUID(int=2)), 0, 40)
    assert isinstance(found, Disbelief)
    assert "the topic was made again with id 00000000-0000-0000-0000-000000000002" in found.why
    assert found.why.endswith("run `spark-audit digest dc1`")


def test_evidence_with_a_fault_is_named() -> None:
    missing = replace(LOG, fault="rows of night x are missing")
    found = considered("dc1", missing, NOW, 0, 40, "payments")
    assert isinstance(found, Disbelief)
    assert found.why.endswith(
        "rows of night x are missing; take it anew with"
        " `spark-audit digest dc1 --full --set payments`"
    )


@pytest.mark.parametrize("end", [EpochEnd(4, 30), EpochEnd(4, 99)])
def test_a_leader_whose_log_has_the_whole_epoch_proves_all_before_its_end(end: EpochEnd) -> None:
    assert proven("dc1", AskedLinks(links=LINKS), end) == LINKS


@pytest.mark.parametrize("end", [EpochEnd(4, 29), EpochEnd(3, 40), EpochEnd(-1, -1)])
def test_a_log_that_an_election_cut_short_contradicts_what_is_remembered(end: EpochEnd) -> None:
    """Whatever was written behind the cut since: the epoch has ended before what is remembered."""
    found = proven("dc1", AskedLinks(links=LINKS), end)
    assert isinstance(found, Disbelief)
    assert found.is_contradicted
    assert "it was truncated" in found.why


@pytest.mark.parametrize("answer", [None, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_a_leader_that_does_not_say_proves_nothing_and_contradicts_nothing(
    answer: ErrorCode | None,
) -> None:
    found = proven("dc1", AskedLinks(links=LINKS), answer)
    assert isinstance(found, Disbelief)
    assert not found.is_contradicted


def test_evidence_of_another_cluster_is_none_of_a_site() -> None:
    told = RememberedSite(cluster="abc", logs={})
    assert wrong_cluster("dc1", told, "abc") is None
    assert wrong_cluster("dc1", RememberedSite(), "abc") is None
    for other in ("xyz", None):
        assert "is of cluster abc, and dc1 is cluster" in str(wrong_cluster("dc1", told, other))


def _told(cluster: str = "c1") -> dict[str, RememberedSite]:
    return {"dc1": RememberedSite(cluster=cluster, logs={PLACE: LOG})}


def _pair() -> Pair:
    return Pair(source=Log(stop=40), target=Log(stop=40))


def test_of_two_sites_the_one_that_has_evidence_is_asked() -> None:
    snapshot = replace(snapshot_of({PLACE: _pair()}), cluster_ids={"dc1": "c1", "dc2": "c2"})
    asked = consider(snapshot, _told())
    assert (asked.epochs(Side.SOURCE), asked.epochs(Side.TARGET)) == ({PLACE: 4}, {})
    answers = {Side.SOURCE: {PLACE: EpochEnd(4, 35)}, Side.TARGET: {}}
    assert believe(snapshot, asked, answers).kept == {(Side.SOURCE, PLACE): LINKS}
    short = {Side.SOURCE: {PLACE: EpochEnd(4, 3)}, Side.TARGET: {}}
    believed = believe(snapshot, asked, short)
    assert not believed.kept
    assert "it was truncated" in believed.untold[PLACE]


def test_evidence_and_leaders_know_a_log_by_the_name_that_its_cluster_has_for_it() -> None:
    copy = TopicPartition("dc1.orders", 0)
    snapshot = replace(snapshot_of({PLACE: _pair()}), cluster_ids={"dc2": "c1"})
    [bounds] = snapshot.partitions
    snapshot = replace(snapshot, partitions=(replace(bounds, target_topic="dc1.orders"),))
    told = {"dc2": RememberedSite(cluster="c1", logs={copy: LOG})}
    asked = consider(snapshot, told)
    assert asked.epochs(Side.TARGET) == {copy: 4}
    believed = believe(snapshot, asked, {Side.TARGET: {copy: EpochEnd(4, 35)}})
    assert believed.kept == {(Side.TARGET, PLACE): LINKS}
    believed = believe(snapshot, asked, {Side.TARGET: {copy: EpochEnd(4, 3)}})
    assert believed.untold[PLACE].startswith("dc1.orders-0: ")


def test_behind_a_promotion_nothing_behind_the_seal_is_kept_of_the_target() -> None:
    pair = _pair()
    pair.seal = Seal(mirrored_source_end=40, target_end=26)
    snapshot = replace(snapshot_of({PLACE: pair}), cluster_ids={"dc2": "c1"})
    asked = consider(snapshot, {"dc2": _told()["dc1"]})
    assert asked.asked == {(Side.TARGET, PLACE): AskedLinks(links=LINKS[:2])}


def test_where_both_directions_have_run_logs_are_read() -> None:
    pair = _pair()
    pair.to_source = pair.to_target = Brought()
    snapshot = replace(snapshot_of({PLACE: pair}), cluster_ids={"dc1": "c1"})
    assert not consider(snapshot, _told()).asked


def test_an_audit_with_evidence_of_another_cluster_cannot_tell() -> None:
    snapshot = replace(snapshot_of({PLACE: _pair()}), cluster_ids={"dc1": "c9", "dc2": "c2"})
    with pytest.raises(CannotTell, match="evidence of dc1 is of cluster c1"):
        consider(snapshot, _told())
