"""`mirror offsets` and `mirror translate`, against two real clusters and without a daemon."""

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from offset_translation import NotYet, map_topic_name
from tests.commands import run_mirror_command
from tests.failover.two_sites import (
    QUIET,
    Sites,
    commit_by_hand,
    committed,
    create_topic,
    delete_records,
    delete_topic,
    produce,
    read_all,
    values_of,
)
from tests.mirror.daemon import append_batches, configure, run_mirror, wait_until
from wire.record_batch import Record, build_batch

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def sites(shared_sites: Sites) -> Sites:
    return shared_sites


def run(configuration: Path, *words: str) -> CompletedProcess[str]:
    """Run `mirror` with the configuration as its last word."""
    return run_mirror_command(*words, configuration)


def wait_committed(sites: Sites, group: str) -> None:
    wait_until(group, lambda: committed(sites.dc2, group, "orders") > 0)


@pytest.fixture(scope="module")
def mirrored(sites: Sites, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Mirror twenty records, and groups in their midst and at their end."""
    configuration = configure(sites, tmp_path_factory.mktemp("positions"), "orders")
    create_topic(sites.dc1, "orders")
    produce(sites.dc1, "orders", range(10))
    records = [Record(0, 1, None, b"kept"), Record(5, 1, None, b"kept")]
    append_batches(sites.dc1, "orders", [build_batch([record]) for record in records])
    produce(sites.dc1, "orders", range(12, 20))
    for group, offset in (("early", 4), ("late", 20)):
        commit_by_hand(sites.dc1, group, "orders", offset)
    with run_mirror(configuration) as mirror:
        mirror.wait_mirrored("orders", 20)
        for group in ("early", "late"):
            wait_committed(sites, group)
        assert mirror.stop() == 0
    return configuration


def test_a_group_is_shown_with_what_a_switch_would_cost_it(sites: Sites, mirrored: Path) -> None:
    shown = run(mirrored, "offsets", "early")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "flow dc1->dc2: group early: 1 partitions, 0 records would be read again" in shown.stdout
    commit_by_hand(sites.dc1, "early", "orders", 9)
    [row] = json.loads(run(mirrored, "offsets", "early", "--json").stdout)["positions"]
    assert row["source_offset"] == row["translated"] == 9
    assert (row["target_offset"], row["reread"], row["skipped"]) == (4, 5, 0)
    assert (row["exactness"], row["source_lag"]) == ("exact", 11)
    assert row["applied_ms"] > 0


def test_an_offset_translates_there_and_back(mirrored: Path) -> None:
    there = run(mirrored, "translate", "orders:0:13")
    assert (there.returncode, there.stdout) == (0, "dc1 orders:0:13 -> dc2 orders:0:13 (exact)\n")
    back = run(mirrored, "translate", "orders:0:13", "--reverse")
    assert (back.returncode, back.stdout) == (0, "dc2 orders:0:13 -> dc1 orders:0:13 (exact)\n")
    beyond = run(mirrored, "translate", "orders:0:99", "--json")
    assert beyond.returncode == 1
    assert json.loads(beyond.stdout)["to"] == 20
    unknown = run(mirrored, "translate", "nothing:0:0")
    assert (unknown.returncode, unknown.stdout) == (
        1,
        "dc1 nothing:0:0 -> nowhere (not mirrored)\n",
    )


def test_exported_positions_are_imported_for_idle_groups(
    sites: Sites, mirrored: Path, tmp_path: Path
) -> None:
    exported = run(mirrored, "offsets", "export", "late", "--flow", "dc1->dc2")
    assert (exported.returncode, exported.stdout) == (0, "late,orders,0,20\n")
    file = tmp_path / "positions.csv"
    file.write_text("late,orders,0,7\nfresh,orders,0,3\n")
    imported = run(mirrored, "offsets", "import", str(file))
    assert (imported.returncode, imported.stderr) == (0, "")
    assert (committed(sites.dc2, "late", "orders"), committed(sites.dc2, "fresh", "orders")) == (
        7,
        3,
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("late,orders,0,21", "offset 21 lies outside the target's log of orders-0, 0 to 20"),
        ("late,orders,5,1", "orders-5 is not mirrored by this flow"),
        ("late,orders,0", "3 columns, not 4"),
    ],
)
def test_a_file_with_a_wrong_position_changes_nothing(
    sites: Sites, mirrored: Path, tmp_path: Path, line: str, told: str
) -> None:
    before = committed(sites.dc2, "late", "orders")
    file = tmp_path / "positions.csv"
    file.write_text(f"late,orders,0,1\nother,orders,0,1\n{line.replace('late', 'third')}\n")
    refused = run(mirrored, "offsets", "import", str(file))
    assert refused.returncode == 2
    assert f"mirror: {file}:3: {told}" in refused.stderr
    assert committed(sites.dc2, "late", "orders") == before


def test_the_examples_of_the_documentation_translate(sites: Sites, mirrored: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "clients" / "own-offsets.md"
    named: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(example, named)  # noqa: S102 - our own page
    consumer = Consumer({"bootstrap.servers": sites.dc2.bootstrap, "group.id": "library", **QUIET})
    state = named["load_map"](consumer)
    assert named["target_offset"](state, "orders", 0, 13) == 13
    assert named["target_offset"](state, "orders", 0, 21) is NotYet.UNMIRRORED
    consumer.close()
    line = '{"orders":{"0":13}}'
    assert json.loads(named["spark_starting_offsets"](state, line)) == {"orders": {"0": 13}}
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE offsets (topic TEXT, part INTEGER, at INTEGER)")
        database.execute("INSERT INTO offsets VALUES ('orders', 0, 99)")
        named["move_offsets"](database, state)
        assert database.execute("SELECT at FROM offsets").fetchall() == [(20,)]
    assert mirrored.exists()


def test_what_is_not_there_is_named(mirrored: Path) -> None:
    for words, told in (
        (("offsets", "nobody"), "group nobody has no position here"),
        (("offsets", "a", "b"), "offsets wants one group"),
        (("translate", "orders:0:1", "--flow", "dc2->dc1"), "there is no such flow"),
    ):
        answer = run(mirrored, *words)
        assert answer.returncode == 2
        assert told in answer.stderr
        assert answer.stderr.count("\n") == 1


def test_with_the_source_lost_the_last_known_positions_count(sites: Sites, mirrored: Path) -> None:
    text = mirrored.read_text().replace(sites.dc1.bootstrap, "127.0.0.1:1")
    lost = mirrored.with_name("lost.yaml")
    lost.write_text(text)
    shown = run(lost, "offsets", "late")
    assert shown.returncode == 0
    assert "by what was mirrored last: dc1: " in shown.stdout
    assert "20 (last known)" in shown.stdout
    assert run(lost, "translate", "orders:0:13").stdout.endswith("dc2 orders:0:13 (exact)\n")


def test_a_lost_map_is_rebuilt_and_the_mirror_goes_on_where_it_was(
    sites: Sites, tmp_path: Path
) -> None:
    configuration = configure(sites, tmp_path, "rebuilt.*")
    for topic in ("rebuilt", "rebuilt-trimmed", "rebuilt-empty"):
        create_topic(sites.dc1, topic)
        if topic != "rebuilt-empty":
            produce(sites.dc1, topic, range(30))
    delete_records(sites.dc1, "rebuilt-trimmed", 5)
    with run_mirror(configuration) as mirror:
        for topic in ("rebuilt", "rebuilt-trimmed"):
            mirror.wait_mirrored(topic, 30)
        refused = run(configuration, "rebuild-map", "--write")
        assert (refused.returncode, "stop it first" in refused.stderr) == (2, True)
        assert mirror.stop() == 0
    before = run(configuration, "translate", "rebuilt-trimmed:0:20").stdout
    delete_topic(sites.dc2, map_topic_name("dc1"))
    delete_records(sites.dc1, "rebuilt", 12)
    told = run(configuration, "rebuild-map")
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.splitlines() == [
        "rebuilt-0: 30 mirrored records, 1 boundaries",
        "rebuilt-empty-0: the target is empty: nothing to rebuild",
        "rebuilt-trimmed-0: 25 mirrored records, 1 boundaries",
        "nothing was written: --write does",
    ]
    assert run(configuration, "rebuild-map", "--write").returncode == 0
    assert run(configuration, "translate", "rebuilt-trimmed:0:20").stdout == before
    produce(sites.dc1, "rebuilt", range(30, 40))
    with run_mirror(configuration) as mirror:
        mirror.wait_mirrored("rebuilt", 40)
        assert mirror.stop() == 0
    assert values_of(read_all(sites.dc2, "rebuilt")) == list(range(40))
    again = run(configuration, "rebuild-map")
    assert "rebuilt-0: is in the map already and stays as it is" in again.stdout


def test_a_target_with_records_of_others_is_not_rebuilt(sites: Sites, tmp_path: Path) -> None:
    configuration = configure(sites, tmp_path, "foreign")
    for cluster in (sites.dc1, sites.dc2):
        create_topic(cluster, "foreign")
        produce(cluster, "foreign", range(3))
    refused = run(configuration, "rebuild-map")
    assert refused.returncode == 1
    assert "foreign-0: cannot be rebuilt: the target holds no mirrored record" in refused.stdout


def noting(written: list[tuple[int, int]]) -> Callable[[KafkaError | None, Message], None]:
    def delivered(_: KafkaError | None, message: Message) -> None:
        written.append((message.offset() or 0, int(message.value() or b"-1")))

    return delivered


def is_at(sites: Sites, group: str, offset: int) -> Callable[[], bool]:
    return lambda: committed(sites.dc2, group, "transactions") == offset


def write_transactions(sites: Sites, topic: str, group: str, count: int) -> list[tuple[int, int]]:
    """Commit every second transaction of four records; return where what was committed lies.

    Each one moves the group's position behind its own records; its end decides whether that counts.
    """
    producer = Producer(
        {"bootstrap.servers": sites.dc1.bootstrap, "transactional.id": topic, **QUIET}
    )
    producer.init_transactions(60)
    follower = Consumer({"bootstrap.servers": sites.dc1.bootstrap, "group.id": group, **QUIET})
    committed_at: list[tuple[int, int]] = []
    for number in range(count):
        written: list[tuple[int, int]] = []
        producer.begin_transaction()
        for value in range(4 * number, 4 * number + 4):
            producer.produce(topic, b"%d" % value, partition=0, on_delivery=noting(written))
        assert producer.flush(60) == 0
        position = TopicPartition(topic, 0, written[-1][0] + 1)
        producer.send_offsets_to_transaction([position], follower.consumer_group_metadata(), 60)
        if number % 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
            committed_at += written
    follower.close()
    return committed_at


def test_a_transactional_source_is_mirrored_with_exact_positions_in_its_holes(
    sites: Sites, tmp_path: Path
) -> None:
    """What was aborted is not on the target, and what was committed in a transaction counts."""
    create_topic(sites.dc1, "transactions")
    source = write_transactions(sites, "transactions", "in-transactions", 6)
    assert [value for _, value in source] == [*range(4), *range(8, 12), *range(16, 20)]
    with run_mirror(configure(sites, tmp_path, "transactions")) as mirror:
        wait_until("the group", is_at(sites, "in-transactions", 12))
        for place in (0, 3, 4, 7, 8, 11):
            commit_by_hand(sites.dc1, "by-hand", "transactions", source[place][0])
            wait_until(f"place {place}", is_at(sites, "by-hand", place))
        assert mirror.stop() == 0
    assert values_of(read_all(sites.dc2, "transactions")) == [value for _, value in source]
