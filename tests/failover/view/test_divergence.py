"""Sites that disagree behind a disaster: each record is in both logs, or on a list by offset."""

import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from failover.commands import promotion
from tests.auditing import audited
from tests.clusters import RunningCluster
from tests.failover.both_ways import (
    configure_both_ways,
    go_on_reading,
    promote,
    wait_logged,
    wait_same_logs,
)
from tests.failover.promoting import run_mirror, tell, wait_mirroring
from tests.failover.set_aside import divergence, lines_of, restart, set_aside
from tests.failover.two_sites import (
    QUIET,
    READ_TIMEOUT_S,
    Sites,
    committed,
    create_topic,
    pause,
    produce,
    read_all,
    values_of,
    wait_length,
)

pytestmark = pytest.mark.integration


@contextmanager
def mirrored_until_dc1_is_lost(
    sites: Sites, file: Path, topic: str, numbers: Sequence[int]
) -> Iterator[None]:
    """The mirror brings these numbers to dc2 and dies; behind the block dc1 is lost."""
    with run_mirror(file) as daemon:
        wait_mirroring(file)
        produce(sites.dc1, topic, numbers)
        wait_same_logs(sites, topic, len(numbers))
        daemon.kill()
        daemon.wait()
    yield
    sites.dc1.kill()


@pytest.mark.story
def test_foreign_records_on_an_open_standby_do_not_hide_what_a_lost_site_had(
    mortal_sites: Sites, tmp_path: Path
) -> None:
    """3 records on dc2 that are nobody's copy, and 5 acknowledged on dc1 that have no copy."""
    sites, topic = mortal_sites, "open-standby"
    create_topic(sites.dc1, topic)
    file = configure_both_ways(sites, tmp_path, "/p-open-standby", topic)
    every = "discovery_interval_ms: 200"
    told = file.read_text().replace(every, f"{every}\n    on_target_diverged: quarantine")
    file.write_text(told)
    with mirrored_until_dc1_is_lost(sites, file, topic, range(20)):
        produce(sites.dc2, topic, range(900, 903))
        produce(sites.dc1, topic, range(20, 25))
    ended = tell("promote", "dc2", str(file), "--source-lost")
    assert ended.status == 1, ended
    assert f"{topic}-0: mirrored up to dc1 offset 20 (dc2 20)" in ended.output
    assert f"dc2 {topic}-0 holds records at offsets 20 to 22" in ended.output
    produce(sites.dc2, topic, range(100, 104))
    assert divergence(file) == (1, [("foreign", "dc2", offset) for offset in range(20, 23)])
    sites.dc1.start()
    foreign, alone = (
        [(what, site, offset) for offset in offsets]
        for what, site, offsets in (
            ("foreign", "dc2", range(20, 23)),
            ("only there", "dc1", range(20, 25)),
        )
    )
    assert divergence(file) == (1, [*foreign, *alone])
    told = tell("divergence", str(file)).output
    assert (
        f"{topic}-0: dc1 alone has 5 records at offsets 20 to 24; `mirror restart dc2-dc1" in told
    )
    assert "with --merge 1 of 1 keys end with different values" in told
    with run_mirror(file):
        wait_length(sites.dc1, topic, 32)
    own = [*range(900, 903), *range(100, 104)]
    assert values_of(read_all(sites.dc2, topic)) == [*range(20), *own]
    assert values_of(read_all(sites.dc1, topic)) == [*range(25), *own]
    lost = [(number, number) for number in range(20, 25)]
    assert set_aside(sites.dc1, topic) == set_aside(sites.dc2, topic) == lost
    assert [(int(b64decode(one["value"])), one["offset"]) for one in lines_of(tmp_path)] == lost
    aside = [("set aside", "dc1", offset) for offset in range(20, 25)]
    assert divergence(file) == (0, [*aside, *foreign])


def change(cluster: RunningCluster, topic: str, **values: bytes) -> None:
    """Write one record for each key."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **QUIET})
    for key, value in values.items():
        producer.produce(topic, value, key, 0)
    assert producer.flush(READ_TIMEOUT_S) == 0


def last_values(cluster: RunningCluster, topic: str) -> dict[Any, Any]:
    """Return the last value of each key that has one."""
    last = {one.key(): one.value() for one in read_all(cluster, topic)}
    return {key: value for key, value in last.items() if value is not None}


@pytest.mark.story
def test_a_key_that_only_a_lost_site_changed_ends_alike_on_both_sites(
    mortal_sites: Sites, tmp_path: Path
) -> None:
    sites, topic = mortal_sites, "accounts"
    create_topic(sites.dc1, topic, settings={"cleanup.policy": "compact"})
    file = configure_both_ways(sites, tmp_path, "/p-accounts", topic)
    with mirrored_until_dc1_is_lost(sites, file, topic, [100]):
        produce(sites.dc1, topic, [90])
        change(sites.dc1, topic, new=b"unheard of")
    promote("dc2", file, "--source-lost")
    produce(sites.dc2, topic, [250])
    sites.dc1.start()
    with run_mirror(file):
        wait_logged(file, f"{topic}-0: target diverged: the target holds offsets 1 to 2")
        restart(file, topic, "--quarantine")
        wait_length(sites.dc1, topic, 5)
        assert last_values(sites.dc1, topic) == last_values(sites.dc2, topic) == {b"k": b"250"}
        promote("dc1", file)
        produce(sites.dc1, topic, [260])
        wait_length(sites.dc2, topic, 3)
        promote("dc2", file)
    assert values_of(read_all(sites.dc2, topic)) == [100, 250, 260]
    assert last_values(sites.dc1, topic) == last_values(sites.dc2, topic) == {b"k": b"260"}
    aside = [("set aside", "dc1", offset) for offset in (1, 2)]
    assert divergence(file) == (0, aside), "what only sets a key back is nobody's loss"
    counted = audited(file, status=0)["dc1->dc2"]
    assert counted["explained"] > 0
    assert counted.keys() <= {"source_records", "target_records", "explained"}, "cleaners may run"


@pytest.mark.parametrize("how", ["--quarantine", pytest.param("--merge", marks=pytest.mark.story)])
def test_what_a_promotion_that_was_taken_back_had_let_in_is_listed_and_decided_about(
    sites: Sites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Its controller dies when dc2 is open; a client of dc2 is told that its records are there."""
    topic = f"let-in{how[1:]}"
    file = configure_both_ways(sites, tmp_path, f"/p-{topic}", topic)
    create_topic(sites.dc1, topic)
    shown = promotion.show_if_anybody_reads

    def die_behind_the_opening(line: str) -> None:
        shown(line)
        if line.startswith("open-target "):
            raise KeyboardInterrupt

    with run_mirror(file):
        wait_mirroring(file)
        produce(sites.dc1, topic, range(20))
        wait_same_logs(sites, topic, 20)
        with monkeypatch.context() as patched:
            patched.setattr(promotion, "show_if_anybody_reads", die_behind_the_opening)
            tell("promote", "dc2", str(file))
        produce(sites.dc2, topic, range(900, 903))
        told = tell("abort", str(file))
        assert f"dc2 {topic}-0 holds records at offsets 20 to 22 that are not on dc1" in told.output
        wait_logged(file, f"{topic}-0: target diverged: the target holds offsets 20 to 22")
        alone = [("only there", "dc2", offset) for offset in range(20, 23)]
        assert divergence(file) == (1, alone)
        restart(file, topic, how, flow="dc1->dc2")
        produce(sites.dc1, topic, range(20, 25))
        wait_length(sites.dc2, topic, 28)
        is_aside = how == "--quarantine"
        aside = [("set aside", "dc2", offset) for offset in range(20, 23)]
        assert divergence(file) == ((0, aside) if is_aside else (1, alone))
        promote("dc2", file)
        if is_aside:
            assert values_of(read_all(sites.dc1, topic)) == [*range(25)]
        else:
            wait_length(sites.dc1, topic, 28)


@pytest.mark.story
def test_what_others_write_to_a_returned_site_between_the_mirrors_batches_is_set_aside(
    mortal_sites: Sites, tmp_path: Path
) -> None:
    """dc1 is back and open: a batch of the way back lands behind records that others wrote."""
    sites, topic = mortal_sites, "returned-open"
    create_topic(sites.dc1, topic)
    file = configure_both_ways(sites, tmp_path, "/p-returned-open", topic)
    with mirrored_until_dc1_is_lost(sites, file, topic, range(20)):
        pass
    promote("dc2", file, "--source-lost")
    sites.dc1.start()
    with run_mirror(file):
        produce(sites.dc2, topic, range(20, 25))
        wait_length(sites.dc1, topic, 25)
        produce(sites.dc1, topic, range(900, 906))
        produce(sites.dc2, topic, range(25, 30))
        wait_logged(file, f"{topic}-0: a batch for target offset 25 was put at 31")
    produce(sites.dc2, topic, range(30, 40))
    with run_mirror(file):
        wait_logged(file, f"{topic}-0: target diverged: the target holds offsets 25 to 30 that no")
        foreign = range(25, 31)
        assert divergence(file) == (1, [("only there", "dc1", offset) for offset in foreign])
        restart(file, topic, "--quarantine")
        wait_length(sites.dc1, topic, 46)
        assert divergence(file) == (0, [("set aside", "dc1", offset) for offset in foreign])
        assert go_on_reading(sites.dc2, "readers", topic, 27) == [*range(27)]
        while committed(sites.dc1, "readers", topic) != 33:
            pause(0.1)
        promote("dc1", file)
        produce(sites.dc1, topic, range(40, 45))
        wait_length(sites.dc2, topic, 45)
    assert values_of(read_all(sites.dc2, topic)) == [*range(45)]
    own = [*range(25), *range(900, 906), *range(25, 45)]
    assert values_of(read_all(sites.dc1, topic)) == own
    aside = list(zip(range(900, 906), foreign, strict=True))
    assert set_aside(sites.dc1, topic) == set_aside(sites.dc2, topic) == aside


def abort(cluster: RunningCluster, topic: str, numbers: Sequence[int]) -> None:
    """Write these in a transaction that is aborted."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": "aborting", **QUIET}
    )
    producer.init_transactions()
    producer.begin_transaction()
    for number in numbers:
        producer.produce(topic, b"%d" % number, partition=0)
    producer.flush()
    producer.abort_transaction()


@pytest.mark.story
def test_offsets_that_no_reader_is_shown_are_decided_about_as_well(
    mortal_sites: Sites, tmp_path: Path
) -> None:
    """The mirror stands at them, so an answer of nothing would be no answer."""
    sites, topic = mortal_sites, "unseen"
    create_topic(sites.dc1, topic)
    file = configure_both_ways(sites, tmp_path, "/p-unseen", topic)
    with mirrored_until_dc1_is_lost(sites, file, topic, range(10)):
        abort(sites.dc1, topic, range(10, 13))
    promote("dc2", file, "--source-lost")
    produce(sites.dc2, topic, range(100, 104))
    sites.dc1.start()
    with run_mirror(file):
        # The transaction's coordinator may mark its end once more when it is back.
        wait_logged(file, f"{topic}-0: target diverged: the target holds offsets 10 to 1")
        require_unseen_offsets(file, topic, first=10)
        restart(file, topic, "--quarantine")
        wait_length(sites.dc1, topic, 14)
        assert divergence(file) == (0, [])
    abort(sites.dc1, topic, range(20, 23))  # behind what the mirror has written there
    with run_mirror(file):
        wait_logged(file, "that no mirror has written")
        require_unseen_offsets(file, topic)
        restart(file, topic, "--quarantine")
        produce(sites.dc2, topic, range(104, 106))
        wait_length(sites.dc1, topic, 16)
        assert divergence(file) == (0, [])
        promote("dc1", file)
    assert values_of(read_all(sites.dc1, topic)) == [*range(10), *range(100, 106)]
    assert divergence(file) == (0, [])


def require_unseen_offsets(file: Path, topic: str, first: int | None = None) -> None:
    """What dc1 alone has without a record in it is listed, with the way on."""
    told = tell("divergence", str(file))
    assert told.status == 1, told
    offsets = r"\d+" if first is None else first
    assert re.search(
        rf"{topic}-0: dc1 alone has offsets {offsets} to \d+, and no record there that a reader is"
        rf" shown: transactions were aborted. `mirror restart dc2-dc1 {topic}:0 --quarantine`",
        told.output,
    ), told


def test_offsets_that_no_reader_is_shown_are_listed_behind_what_the_mirror_wrote_as_well(
    sites: Sites, tmp_path: Path
) -> None:
    topic = "unseen-there"
    create_topic(sites.dc1, topic)
    file = configure_both_ways(sites, tmp_path, "/p-unseen-there", topic)
    with run_mirror(file):
        wait_mirroring(file)
        produce(sites.dc1, topic, range(10))
        wait_same_logs(sites, topic, 10)
    abort(sites.dc2, topic, range(90, 93))
    with run_mirror(file):
        wait_logged(file, f"{topic}-0: target diverged: the target holds offsets 10 to 13")
        told = tell("divergence", str(file))
        assert told.status == 1, told
        assert f"{topic}-0: dc2 alone has offsets 10 to 13, and no record there" in told.output
