"""The report of `/status`: each partition's one state, each group's position on both sides. Pure.

The JSON object is made of the typed dictionaries below, and is what `mirror status` reads back.
"""

from collections.abc import Mapping
from typing import Final, NotRequired, TypedDict, TypeVar

from mirror.flow.engine import Engine
from mirror.flow.run_decision import Role
from mirror.flow.runner import FlowRunner
from mirror.flow.speed import Speed
from mirror.forward.open_transactions import OpenTransaction, told_transaction
from mirror.groups.checkpoint_log import GroupPartition
from mirror.groups.sync import GroupStatus
from mirror.map.unbelieved_watch import told_unbelieved
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import STOPPED, advice_for
from mirror.state.reverse_flow import may_hold_own
from offset_translation.map_records import Begun
from offset_translation.translation import translate_clamped
from runtime.process.fault_note import FaultNote
from wire.kernel.chosen import walker
from wire.topic_partition import TopicPartition

CREDENTIALS_ADVICE: Final = "correct the credentials or the rights; it is tried again by itself"
NOT_RUNNING: Final = "not running"
"""The role of a flow without a daemon; for how long, nobody knows."""
NO_DAEMON: Final = "no daemon"
"""The state of what nobody mirrors now."""


TRANSACTION_ADVICE: Final = (
    "the mirror goes on by itself when the transaction ends: find its producer with "
    "`kafka-transactions.sh describe-producers` for this partition of the source, and if it is "
    "gone for good, end it with `kafka-transactions.sh abort`"
)


class PartitionReport(TypedDict):
    """One partition; None is unknown, which is not zero."""

    topic: str
    partition: int
    state: str
    since_ms: int
    reason: str
    advice: str
    source_end: int | None
    mirrored_source_end: int | None
    mirrored_target_end: int | None
    lag_records: int | None
    lag_seconds: float | None
    in_flight_bytes: int
    lost_records: int
    skipped_records: int
    looped_batches: int
    """Left out because the flow in the other direction has written them."""
    target_topic: NotRequired[str]
    """The topic's name on the target, where it has another there."""
    worker: NotRequired[str]
    """The worker that mirrors it, where several workers share the flow."""
    begun_at: NotRequired[int]
    """The source offset before which nothing is carried, on purpose: by the flow's `start`."""
    begun_by: NotRequired[str]
    """That `start`."""


class WorkerReport(TypedDict):
    """One of several workers of a flow; the first of them leads."""

    worker: str
    role: str
    reason: str
    partitions: int
    lag_records: int | None
    bytes_per_second: float | None


class GroupReport(TypedDict):
    """One group on one partition; lags count offsets behind each side's end."""

    group: str
    topic: str
    partition: int
    state: str
    source_offset: int
    target_offset: int | None
    source_lag: int | None
    target_lag: int | None
    source_lag_seconds: NotRequired[float | None]
    """Seconds since the group last had everything; None, or nothing, while that is not known."""
    target_topic: NotRequired[str]
    """As of a partition."""
    reread: NotRequired[int | None]
    """Records that the group would read again if it went on at the target now."""


class RefusedSettingReport(TypedDict):
    """A topic's setting that the target refuses; the topic is mirrored without it."""

    topic: str
    setting: str
    value: str
    reason: str


Line = TypeVar("Line", PartitionReport, GroupReport)


class SpeedReport(TypedDict):
    """The speed of a flow; ``done_in_seconds`` is None when the lag does not shrink."""

    records_per_second: float
    bytes_per_second: float
    lag_records: int
    done_in_seconds: float | None


class FlowHead(TypedDict):
    """One flow as its daemon, or who looks from outside, sees it, without what may be many."""

    flow: str
    role: str
    since_ms: int
    reason: str
    faults: list[str]
    refused_settings: list[RefusedSettingReport]
    groups_by: str
    """The origin of the source's group positions; empty if nobody reads them."""
    speed: SpeedReport | None
    """None while there is no daemon, or not for long enough."""
    refused_after_switch: NotRequired[str | None]
    """Who would be refused on the target, in a line; None if nobody, as far as is known."""
    withheld_rights: NotRequired[list[str]]
    """A line for each rule of the source that denies something and that the target does not get."""
    unbelieved_records: NotRequired[list[str]]
    """A line for each map topic that others have written to: those records are not believed."""
    walked_by: NotRequired[str]
    """Native code or Python, which walks what is fetched, and why."""


class FlowReport(FlowHead):
    """All of a flow."""

    partitions: list[PartitionReport]
    groups: list[GroupReport]
    workers: NotRequired[list[WorkerReport]]
    """Where several share the flow."""


class StatusReport(TypedDict):
    """All of it."""

    program: str
    pid: int
    started_ms: int
    """With the process id it tells workers of several machines apart; 0 where none answers."""
    now_ms: int
    flows: list[FlowReport]


def flow_head(runner: FlowRunner) -> FlowHead:
    """Return the state of a flow of this process."""
    engine = runner.engine
    outlook = None if engine is None else engine.acls.outlook
    refusal = None if engine is None else _refusal(engine)
    of_set = runner.config.topic_set
    is_refused = refusal is not None and runner.role is Role.RUNNING
    return {
        "flow": runner.config.name,
        "role": Role.NOT_AUTHORISED.value if is_refused else runner.role.value,
        "since_ms": runner.since_ms,
        "reason": f"{refusal}: {CREDENTIALS_ADVICE}" if is_refused else runner.reason,
        "faults": _faults(runner),
        "refused_settings": [] if engine is None else _refused_settings(engine),
        "groups_by": "" if engine is None else engine.groups.origin,
        "speed": _speed(runner.progress.speed) if runner.role is Role.RUNNING else None,
        "refused_after_switch": None if outlook is None else outlook.summary(of_set),
        "withheld_rights": [] if outlook is None else outlook.withheld_lines,
        "unbelieved_records": []
        if engine is None
        else told_unbelieved(engine.unbelieved_watch.unbelieved_records, of_set),
        "walked_by": walker(may_be_native=runner.config.has_chunk_kernel).words,
    }


def _speed(speed: Speed | None) -> SpeedReport | None:
    if speed is None:
        return None
    return {
        "records_per_second": round(speed.records_per_s, 1),
        "bytes_per_second": round(speed.bytes_per_s, 1),
        "lag_records": speed.lag_records,
        "done_in_seconds": None if speed.done_in_s is None else round(speed.done_in_s, 1),
    }


def _faults(runner: FlowRunner) -> list[str]:
    """Return what keeps parts of the flow from working at present."""
    return [f"{part}: {text}" for part, text in faults_by_part(runner).items() if text is not None]


def faults_by_part(runner: FlowRunner) -> dict[str, str | None]:
    """Return the faults that keep parts of a flow at work from working at present, by part.

    Faults of an engine that has ended do not count: nobody would clear them.
    """
    notes = {} if runner.engine is None or not runner.is_at_work else _fault_notes(runner.engine)
    if notes or runner.file_fault.text is not None:
        notes["file"] = runner.file_fault
    return {part: fault.text for part, fault in notes.items()}


def _refusal(engine: Engine) -> str | None:
    """Return how a cluster refuses us, None where none does."""
    refused = [fault.text for fault in _fault_notes(engine).values() if fault.is_refusal]
    return refused[0] if refused else None


def _fault_notes(engine: Engine) -> dict[str, FaultNote]:
    return {
        "start": engine.starting_fault,
        "tasks": engine.task_fault,
        "discovery": engine.discovery.fault,
        "writers of the map": engine.unbelieved_watch.fault,
        "rights": engine.acls.fault,
        "other workers' partitions": engine.peer_progress.fault,
        "MirrorMaker's topics": engine.mirrormaker.fault,
        "group positions, source": engine.groups.reader.fault,
        "group positions, polled": engine.groups.poller.fault,
        "group positions, target": engine.groups.fault,
    }


def _refused_settings(engine: Engine) -> list[RefusedSettingReport]:
    return [
        {"topic": one.topic, "setting": one.name, "value": one.value, "reason": one.reason}
        for one in engine.discovery.refused.known
    ]


def partition_report(
    partition: MirroredPartition,
    now_ms: int,
    *,
    is_left: bool,
    transactions: Mapping[TopicPartition, OpenTransaction | str],
    engine: Engine,
) -> PartitionReport:
    """Return one partition's line; a source that was left has nothing left to lose.

    `transactions` says whose open transactions hold partitions back, as far as was asked.
    """
    lag_ms = None if is_left else partition.lag_ms(now_ms)
    held = (
        None
        if is_left
        else told_transaction(partition, now_ms, transactions.get(partition.topic_partition))
    )
    report: PartitionReport = {
        "topic": partition.topic,
        "partition": partition.index,
        "state": partition.state.value,
        "since_ms": partition.status.since_ms,
        "reason": partition.status.reason or held or "",
        "advice": TRANSACTION_ADVICE if held else _advice(partition, engine),
        "source_end": partition.source.end,
        "mirrored_source_end": partition.offset_map.mirrored_source_end,
        "mirrored_target_end": partition.offset_map.mirrored_target_end,
        "lag_records": partition.lag_records(now_ms),
        "lag_seconds": None if lag_ms is None else lag_ms / 1000,
        "in_flight_bytes": partition.in_flight.bytes,
        "lost_records": partition.skips.lost,
        "skipped_records": partition.skips.count,
        "looped_batches": partition.skips.looped,
    }
    return with_copy(report, partition.target_topic)


def with_copy(report: Line, target_topic: str) -> Line:
    """Return a line with the topic's name on the target, if it has another there."""
    if target_topic != report["topic"]:
        report["target_topic"] = target_topic
    return report


def topic_words(report: PartitionReport | GroupReport) -> str:
    """Return what a topic is called, with its name on the target where that is another."""
    topic, there = report["topic"], report.get("target_topic")
    return topic if there is None else f"{topic} as {there}"


def _advice(partition: MirroredPartition, engine: Engine) -> str:
    holds_own = partition.state in STOPPED and may_hold_own(engine.flow.reverse, partition)
    return advice_for(
        partition.state,
        engine.flow.config,
        is_savable=partition.skips.is_savable,
        holds_own=holds_own,
    )


def with_begin(report: PartitionReport, begun: Begun | None) -> PartitionReport:
    """Return a partition's line with where it was begun, if that is not its first record."""
    if begun is not None:
        report["begun_at"], report["begun_by"] = begun.source_start, begun.start
    return report


def placed_group_report(
    group_partition: GroupPartition, status: GroupStatus, engine: Engine, now_ms: int
) -> GroupReport:
    """Return one group's line, with what the daemon knows of both sides' ends."""
    _, topic, index = group_partition
    partition = engine.flow.partitions.known.get(TopicPartition(topic, index))
    ends = (
        (None, None)
        if partition is None
        else (partition.source.end, partition.offset_map.mirrored_target_end)
    )
    report = group_report(
        group_partition,
        state=status.state,
        source_offset=status.source_offset,
        target_offset=status.target_offset,
        ends=ends,
        target_topic=engine.flow.config.names.on_target(topic),
    )
    lag_ms = (
        None
        if partition is None
        else engine.group_lags.lag_ms(group_partition, status.source_offset, partition, now_ms)
    )
    report["source_lag_seconds"] = None if lag_ms is None else lag_ms / 1000
    report["reread"] = None if partition is None else _reread(partition, status)
    return report


def _reread(partition: MirroredPartition, status: GroupStatus) -> int | None:
    """Return how many records before its position a group would read again on the target.

    None without a position there, and where the map does not tell where the group's belongs.
    """
    place = translate_clamped(partition.offset_map, status.source_offset)
    if place is None or status.target_offset is None:
        return None
    return max(0, place.target_offset - status.target_offset)


def group_report(
    group_partition: GroupPartition,
    *,
    state: str,
    source_offset: int,
    target_offset: int | None,
    ends: tuple[int | None, int | None],
    target_topic: str,
) -> GroupReport:
    """Return one group's line; ``ends`` are the source's log end and the mirrored target end."""
    group, topic, index = group_partition
    source_end, target_end = ends
    report: GroupReport = {
        "group": group,
        "topic": topic,
        "partition": index,
        "state": state,
        "source_offset": source_offset,
        "target_offset": target_offset,
        "source_lag": None if source_end is None else max(0, source_end - source_offset),
        "target_lag": None
        if target_end is None or target_offset is None
        else max(0, target_end - target_offset),
    }
    return with_copy(report, target_topic)
