"""Foreign clients doing real work against `broker up`: kcat, franz-go, kafkajs."""

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.clusters import RunningCluster, run_cluster
from tests.interop.client_calls import create_topic
from tests.interop.foreign.clients import ForeignClient, Kcat, franz_go, kafkajs, kcat
from wire.errors import ErrorCode
from wire.net import open_cluster

pytestmark = pytest.mark.matrix(subject="The bundled broker with foreign clients")

RECORDS: Final = 5_000
BROKERS: Final = 3


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with run_cluster(tmp_path_factory.mktemp("bundled"), brokers=BROKERS) as cluster:
        yield cluster


@pytest.fixture
def kcat_here(record_property: Callable[[str, object], None]) -> Kcat:
    record_property("against", "kcat")
    found = kcat()
    record_property("against", found.name)
    return found


NAMES: Final = {franz_go: "franz-go", kafkajs: "kafkajs"}


@pytest.fixture(params=NAMES, ids=list(NAMES.values()))
def client(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> ForeignClient:
    record_property("against", NAMES[request.param])
    built: ForeignClient = request.param()
    record_property("against", built.name)
    return built


async def _create(cluster: RunningCluster, topic: str) -> None:
    async with open_cluster(cluster.addresses, client_id="interop") as opened:
        assert await create_topic(opened, topic, partitions=4) == ErrorCode.NONE


@pytest.mark.parametrize("how", ["name", "pattern"])
async def test_a_client_produces_consumes_in_a_group_and_reads_nothing_twice(
    bundled: RunningCluster, client: ForeignClient, how: str
) -> None:
    topic = f"work-{how}-{client.name.split()[0]}"
    await _create(bundled, topic)
    assert client.work(bundled.bootstrap, topic, RECORDS, how) == {
        "produced": RECORDS,
        "consumed": RECORDS,
        "duplicated": 0,
        "out_of_order": 0,
        "reread": 0,
    }


async def test_a_client_commits_and_aborts_transactions_and_reads_what_is_committed(
    bundled: RunningCluster, client: ForeignClient
) -> None:
    topic = f"transactions-{client.name.split()[0]}"
    await _create(bundled, topic)
    assert client.work(bundled.bootstrap, topic, RECORDS, "transactions") == {
        "produced": RECORDS,
        "consumed": RECORDS,
        "duplicated": 0,
        "out_of_order": 0,
        "reread": 0,
    }


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_kcat_reads_back_what_it_wrote(
    bundled: RunningCluster, kcat_here: Kcat, codec: str
) -> None:
    topic = f"kcat-{codec}"
    await _create(bundled, topic)
    lines = [f"{number % 10}:{number}" for number in range(2_000)]
    brokers = ("-b", bundled.bootstrap, "-t", topic)
    kcat_here.run(
        *brokers, "-P", "-K", ":", "-z", codec, "-X", "enable.idempotence=true", "-H", "a=b",
        given="\n".join(lines) + "\n",
    )  # fmt: skip
    read = kcat_here.run(*brokers, "-C", "-o", "beginning", "-e", "-q", "-f", "%k:%s|%h\\n")
    assert sorted(read.splitlines()) == sorted(f"{line}|a=b" for line in lines)
    by_key: dict[str, list[int]] = {}
    for line in read.splitlines():
        key, _, value = line.removesuffix("|a=b").partition(":")
        by_key.setdefault(key, []).append(int(value))
    assert all(values == sorted(values) for values in by_key.values())


async def test_kcat_lists_brokers_partitions_and_offsets_by_time(
    bundled: RunningCluster, kcat_here: Kcat
) -> None:
    await _create(bundled, "kcat-listed")
    listed = kcat_here.run_json("-b", bundled.bootstrap, "-L", "-t", "kcat-listed")
    assert len(listed["brokers"]) == BROKERS
    (topic,) = listed["topics"]
    assert {place["partition"] for place in topic["partitions"]} == set(range(4))
    kcat_here.run("-b", bundled.bootstrap, "-t", "kcat-listed", "-P", "-p", "2", given="one\ntwo\n")
    said = kcat_here.run("-b", bundled.bootstrap, "-Q", "-t", "kcat-listed:2:1")
    assert said.split() == ["kcat-listed", "[2]", "offset", "0"]


async def test_kcat_as_a_group_member_goes_on_where_it_stopped(
    bundled: RunningCluster, kcat_here: Kcat
) -> None:
    await _create(bundled, "kcat-group")
    brokers = ("-b", bundled.bootstrap)
    group = ("-G", "kcat-readers", "-X", "auto.offset.reset=earliest", "-q", "-e", "kcat-group")
    first = "".join(f"{number}\n" for number in range(500))
    kcat_here.run(*brokers, "-P", "-t", "kcat-group", given=first)
    assert sorted(map(int, kcat_here.run(*brokers, *group).split())) == list(range(500))
    kcat_here.run(*brokers, "-P", "-t", "kcat-group", given="500\n501\n")
    assert sorted(map(int, kcat_here.run(*brokers, *group).split())) == [500, 501]
