"""`broker transactions`: list, describe, find-hanging, abort."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from broker.commands.hanging import OpenTransaction, hanging, open_transactions, silent
from broker.commands.reaching import CommandFailed, reach, reason, require
from broker.commands.showing import Row, show_json, show_rows, show_table
from broker.commands.topics import known_topics
from runtime.process.clock import wall_ms
from runtime.process.output import print_line
from runtime.program.agreement import require_agreement
from runtime.program.command import Options
from runtime.program.program import BadInput, ExitStatus
from runtime.program.table import NOTHING
from wire.errors import ErrorCode
from wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersTopicRequest,
)
from wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsState,
)
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsState
from wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from wire.net import Cluster
from wire.net.cluster import SEVERAL_COORDINATORS_SINCE
from wire.topic_partition import TopicPartition

OF_TRANSACTIONS: Final = 1
"""Key type in FindCoordinator."""
AT_ONCE: Final = 1_000
"""Partitions asked about in a request."""
MOST_MS: Final = 253_402_300_800_000
"""The year 10000; a producer may stamp its records with anything."""
TITLES: Final = {
    "transactional_id": "TRANSACTIONAL ID",
    "coordinator": "COORDINATOR",
    "producer_id": "PRODUCER ID",
    "state": "STATE",
}
HANGING_TITLES: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "start_offset": "START",
    "producer_id": "PRODUCER ID",
    "producer_epoch": "EPOCH",
    "last": "LAST RECORD",
}


async def list_transactions(options: Options) -> int:
    """Show the transactional ids that the brokers coordinate."""
    async with reach(options) as cluster:
        found = await _listed(cluster, ListTransactionsRequest(state_filters=tuple(options.state)))
    rows = [
        {
            "transactional_id": one.transactional_id,
            "coordinator": node,
            "producer_id": one.producer_id,
            "state": one.transaction_state,
        }
        for node, states in found.items()
        for one in states
    ]
    rows.sort(key=lambda row: str(row["transactional_id"]))
    show_rows(rows, TITLES, options, empty="there are no such transactions")
    return ExitStatus.DONE


async def _listed(
    cluster: Cluster, request: ListTransactionsRequest
) -> dict[int, tuple[ListTransactionsState, ...]]:
    """Return what each broker coordinates; raises CommandFailed, for unknown is not absent."""
    view = await cluster.metadata((), refresh=True)
    found = {}
    for node in sorted(view.brokers):
        answer = await cluster.request(request, node=node)
        require(f"transactions of broker {node}", answer.error_code)
        if answer.unknown_state_filters:
            unknown = ", ".join(answer.unknown_state_filters)
            raise BadInput(
                f"--state: there is no {unknown}; Kafka has Ongoing, CompleteCommit, ..."
            )
        found[node] = answer.transaction_states
    return found


async def describe(options: Options) -> int:
    """Show one transaction as its coordinator knows it."""
    name = options.transactional_id
    async with reach(options) as cluster:
        node = await _coordinator(cluster, name)
        [found] = await _described(cluster, node, [name])
    if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        raise CommandFailed(
            f"transactional id {name}: there is none; `broker transactions list` has all"
        )
    require(f"transactional id {name}", found.error_code)
    row = _transaction(found, node)
    if options.json:
        show_json(row)
        return ExitStatus.DONE
    for field, value in row.items():
        print_line(f"{field.replace('_', ' ')}: {_shown(field, value)}")
    return ExitStatus.DONE


def _transaction(found: DescribeTransactionsState, node: int) -> Row:
    return {
        "transactional_id": found.transactional_id,
        "coordinator": node,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "state": found.transaction_state,
        "timeout_ms": found.transaction_timeout_ms,
        "start_ms": found.transaction_start_time_ms,
        "partitions": sorted(
            f"{topic.topic}-{index}" for topic in found.topics for index in topic.partitions
        ),
    }


def _shown(field: str, value: object) -> str:
    if field == "start_ms" and isinstance(value, int):
        return _date(value)
    if isinstance(value, list):
        return ", ".join(value) or NOTHING
    return str(value)


def _date(milliseconds: int) -> str:
    """Return a time stamp as people read it; brokers say -1 for none."""
    if not 0 <= milliseconds < MOST_MS:
        return NOTHING
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")


async def _coordinator(cluster: Cluster, name: str) -> int:
    """Return the broker that coordinates a transactional id."""
    connection = await cluster.any_connection()
    if connection.version_of(FindCoordinatorRequest) >= SEVERAL_COORDINATORS_SINCE:
        request = FindCoordinatorRequest(key_type=OF_TRANSACTIONS, coordinator_keys=(name,))
    else:
        request = FindCoordinatorRequest(key=name, key_type=OF_TRANSACTIONS)
    answer = await connection.request(request)
    found = answer.coordinators[0] if answer.coordinators else answer
    require(f"coordinator of {name}", found.error_code, found.error_message)
    return found.node_id


async def _described(
    cluster: Cluster, node: int, names: Sequence[str]
) -> tuple[DescribeTransactionsState, ...]:
    request = DescribeTransactionsRequest(transactional_ids=tuple(names))
    return (await cluster.request(request, node=node)).transaction_states


async def find_hanging(options: Options) -> int:
    """Show transactions that nobody is going to end; the status says whether there are any."""
    longer_than_ms = options.max_transaction_minutes * 60_000
    async with reach(options) as cluster:
        if options.topic:
            topics = await known_topics(cluster, list(dict.fromkeys(options.topic)))
        else:
            topics = list((await cluster.metadata(refresh=True)).topics.values())
        places = [TopicPartition(one.name, index) for one in topics for index in one.partitions]
        opened = silent(await _open(cluster, places), wall_ms(), longer_than_ms)
        known = await _known(cluster, {one.producer_id for one in opened})
    found = sorted(hanging(opened, known), key=lambda one: one.place)
    rows = [_hanging_row(one) for one in found]
    if options.json:
        show_json(rows)
    else:
        shown = [{**row, "last": _date(one.last_ms)} for row, one in zip(rows, found, strict=True)]
        show_table(shown, HANGING_TITLES, empty="no transaction hangs")
    if rows and not options.json:
        first = rows[0]
        print_line(
            f"end one with `broker transactions abort {first['topic']}:{first['partition']} "
            f"{first['start_offset']}`"
        )
    return ExitStatus.FAILED if rows else ExitStatus.DONE


def _hanging_row(one: OpenTransaction) -> Row:
    return {
        "topic": one.place.topic,
        "partition": one.place.partition,
        "start_offset": one.start_offset,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "coordinator_epoch": one.coordinator_epoch,
        "last_ms": one.last_ms,
    }


async def _open(cluster: Cluster, places: Iterable[TopicPartition]) -> list[OpenTransaction]:
    """Return the open transactions of partitions; raises CommandFailed where a leader is silent."""
    view = await cluster.metadata(sorted({topic for topic, _ in places}))
    by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for place in places:
        by_leader[view.partition(*place).leader].append(place)
    found: list[OpenTransaction] = []
    for leader, held in by_leader.items():
        for begin in range(0, len(held), AT_ONCE):
            found += await _open_at(cluster, leader, held[begin : begin + AT_ONCE])
    return found


async def _open_at(
    cluster: Cluster, leader: int, places: Iterable[TopicPartition]
) -> list[OpenTransaction]:
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in places:
        by_topic[topic].append(partition)
    request = DescribeProducersRequest(
        topics=tuple(
            DescribeProducersTopicRequest(name=name, partition_indexes=tuple(indexes))
            for name, indexes in by_topic.items()
        )
    )
    answer = await cluster.request(request, node=leader)
    found: list[OpenTransaction] = []
    for topic_answer in answer.topics:
        for one in topic_answer.partitions:
            place = TopicPartition(topic_answer.name, one.partition_index)
            what = f"producers of {place.topic}-{place.partition}"
            require(what, one.error_code, one.error_message)
            found += open_transactions(place, one.active_producers)
    return found


async def _known(cluster: Cluster, producer_ids: set[int]) -> dict[int, DescribeTransactionsState]:
    """Return the transactions of producers that a coordinator knows, by producer id."""
    if not producer_ids:
        return {}
    request = ListTransactionsRequest(producer_id_filters=tuple(sorted(producer_ids)))
    known: dict[int, DescribeTransactionsState] = {}
    for node, states in (await _listed(cluster, request)).items():
        names = [one.transactional_id for one in states]
        if names:
            known |= by_producer(await _described(cluster, node, names))
    return known


def by_producer(
    described: Iterable[DescribeTransactionsState],
) -> dict[int, DescribeTransactionsState]:
    """Return the transactions by producer id, without those that ended since they were listed.

    Raises CommandFailed for one that its coordinator does not tell of now: it may be alive.
    """
    known: dict[int, DescribeTransactionsState] = {}
    for one in described:
        if one.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            continue
        require(f"transactional id {one.transactional_id}", one.error_code)
        known[one.producer_id] = one
    return known


async def abort(options: Options) -> int:
    """End a transaction in one partition by an abort marker, past its coordinator."""
    topic, partition = options.place
    if partition is None:
        raise BadInput(f"{topic}: name the partition, too, as {topic}:0")
    place = TopicPartition(topic, partition)
    name = f"{topic}-{partition}"
    async with reach(options) as cluster:
        [view] = await known_topics(cluster, [topic])
        if partition not in view.partitions:
            raise CommandFailed(f"topic {topic} has no partition {partition}")
        opened = {one.start_offset: one for one in await _open(cluster, [place])}
        meant = opened.get(options.start_offset)
        if meant is None:
            starts = ", ".join(map(str, sorted(opened))) or "none"
            raise CommandFailed(
                f"{name}: no transaction is open since offset {options.start_offset}; open since: "
                f"{starts}"
            )
        require_agreement(
            f"Abort the transaction of producer {meant.producer_id} in {name}, open since offset "
            f"{meant.start_offset}? Its records there are lost to read-committed consumers.",
            is_given=options.yes,
        )
        answer = await cluster.request_leader(topic, partition, _abort_marker(meant))
    codes = [
        one.error_code
        for marker in answer.markers
        for of_topic in marker.topics
        for one in of_topic.partitions
    ]
    failed = next((code for code in codes if code), ErrorCode.NONE)
    if failed:
        raise CommandFailed(f"{name}: {reason(failed)}")
    print_line(f"{name}: the transaction of producer {meant.producer_id} is aborted")
    return ExitStatus.DONE


def _abort_marker(meant: OpenTransaction) -> WriteTxnMarkersRequest:
    topic, partition = meant.place
    return WriteTxnMarkersRequest(
        markers=(
            WritableTxnMarker(
                producer_id=meant.producer_id,
                producer_epoch=meant.producer_epoch,
                transaction_result=False,
                topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=(partition,)),),
                # A leader that has heard of no coordinator takes any.
                coordinator_epoch=max(0, meant.coordinator_epoch),
            ),
        )
    )
