"""One run: snapshots, Spark, the stored result. Not being able to tell is a verdict too."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import trio
from pyspark import SparkContext

from runtime.configuration.config import Configuration, FlowConfig
from runtime.process.clock import now_ms
from runtime.process.java import JavaMissing
from runtime.set_option import set_option
from spark_audit.compare.summary import first_behind
from spark_audit.evidence.believing import Believed, believe, consider, site_of
from spark_audit.evidence.epochs import ask_epochs
from spark_audit.evidence.remembered import Remembered, remembered
from spark_audit.evidence.rows import EvidenceUnusable
from spark_audit.evidence.store import load
from spark_audit.flow_audit import FlowResult, Kept, audit_flow, first_tasks
from spark_audit.read_ahead import ReadAhead
from spark_audit.result.far_results import keep_far
from spark_audit.result.prometheus import textfile
from spark_audit.result.store import (
    EARLIER,
    PROMETHEUS,
    VERDICT,
    Result,
    ResultUnusable,
    replace_result,
)
from spark_audit.result.verdict import Answer, FlowVerdict, Verdict, answer_for, encode, problem_of
from spark_audit.scan.scan_plan import Planner
from spark_audit.session import SparkCluster, SparkFailed, open_session
from spark_audit.snapshot import earlier
from spark_audit.snapshot.bounds import Snapshot
from spark_audit.snapshot.directions import (
    comparable_flows,
    has_ways_back,
    require_still_comparable,
)
from spark_audit.snapshot.seals import CannotTell
from spark_audit.snapshot.side import Side
from spark_audit.snapshot.snapshot import TopicFilter, active_site, take_snapshot
from spark_audit.spark_reader import SparkReader
from wire.net.security import PLAINTEXT
from wire.topic_partition import TopicPartition


def run_audit(
    configuration: Configuration,
    topics: Collection[str],
    output: Path,
    cluster: SparkCluster = SparkCluster(),  # noqa: B008 - it is frozen
    *,
    reads_all: bool = False,
) -> Verdict:
    """Audit all flows, of `topics` or (empty) of all their topics, and store the result.

    What sites' evidence tells, and their leaders prove, is not read, unless one `reads_all`.

    An unreachable cluster or witness, a log that cannot be read and a missing Java give the
    verdict "unknown", stored like the others. Raises ResultUnusable if nothing can be stored.
    """
    started_ms = now_ms()
    with replace_result(output) as result:
        try:
            memory = _memory(output)
            snapshots = _snapshots(configuration, frozenset(topics), memory)
            flows = _audit_flows(
                configuration,
                snapshots,
                result,
                cluster,
                reads_all=reads_all,
                verdict_of=partial(_verdict_of, started_ms, topics),
            )
            result.write_text(EARLIER, _next_memory(memory, snapshots, flows, topics))
        except (CannotTell, JavaMissing, SparkFailed, EvidenceUnusable) as reason:
            verdict = replace(
                _verdict_of(started_ms, topics, ()), answer=Answer.UNKNOWN, problem=str(reason)
            )
        else:
            verdict = _verdict_of(started_ms, topics, flows)
        result.write_text(VERDICT, encode(verdict))
        result.write_text(PROMETHEUS, textfile(verdict))
        result.keep_night(verdict)
    return verdict


def _snapshots(
    configuration: Configuration, only: frozenset[str], memory: earlier.Memory
) -> Sequence[Snapshot]:
    """Ask both clusters, before a JVM is started: a site that is down costs no JVM."""
    active = trio.run(active_site, configuration) if has_ways_back(configuration) else None
    flows = comparable_flows(configuration, active)
    taken = [trio.run(_snapshot, configuration, wants) for wants in wanted(flows, only)]
    limit_ms = configuration.audit.in_flight_limit_ms
    return [earlier.compared_with(memory, snapshot, limit_ms) for snapshot in taken]


def _audit_flows(
    configuration: Configuration,
    snapshots: Sequence[Snapshot],
    result: Result,
    cluster: SparkCluster,
    *,
    reads_all: bool,
    verdict_of: Callable[[Sequence[FlowVerdict]], Verdict],
) -> tuple[FlowVerdict, ...]:
    clusters = configuration.clusters
    bootstrap = {name: cluster.bootstrap for name, cluster in clusters.items()}
    is_secured = any(cluster.security != PLAINTEXT for cluster in clusters.values())
    file = str(configuration.file) if is_secured else ""
    audit = configuration.audit
    reports: list[FlowVerdict] = []
    mirrored: dict[tuple[str, str], Mapping[TopicPartition, int | None]] = {}
    with open_session(
        cores=audit.cores, driver_memory=audit.driver_memory, cluster=cluster
    ) as spark:
        told = {} if reads_all else _told(spark, configuration, snapshots)
        asked = [_asked(configuration, taken, told) for taken in snapshots]
        planners = [Planner(snapshot, bootstrap, file) for snapshot, _ in asked]
        reader = ReadAhead(
            SparkReader(spark),
            [first_tasks(one, kept) for one, (_, kept) in zip(planners, asked, strict=True)],
        )
        for planner, (snapshot, kept) in zip(planners, asked, strict=True):
            audited = audit_flow(
                reader,
                snapshot,
                planner,
                in_flight_limit_ms=audit.in_flight_limit_ms,
                way_back=mirrored.get((snapshot.target, snapshot.source)),
                kept=kept,
            )
            mirrored[snapshot.source, snapshot.target] = audited.mirrored
            result.append(audited.findings, audited.summary)
            reports.append(report_of(snapshot, audited))
        if audit.results is not None:
            keep_far(spark, audit.results, verdict_of(reports), result.findings())
    return tuple(reports)


def _verdict_of(started_ms: int, topics: Collection[str], flows: Sequence[FlowVerdict]) -> Verdict:
    return Verdict(
        answer=answer_for(flows),
        started_ms=started_ms,
        ended_ms=now_ms(),
        flows=tuple(flows),
        problem=problem_of(flows),
        only=tuple(sorted(set(topics))),
    )


def _told(
    spark: SparkContext, configuration: Configuration, snapshots: Sequence[Snapshot]
) -> Remembered:
    """Return what is remembered of each site that has evidence; raises EvidenceUnusable."""
    places, of_set = configuration.audit.evidence, set_option(configuration.topic_set)
    sites = {site for snapshot in snapshots for site in (snapshot.source, snapshot.target)}
    return {
        site: remembered(load(spark, places[site]), places[site], of_set)
        for site in sorted(sites & places.keys())
    }


def _asked(
    configuration: Configuration, taken: Snapshot, told: Remembered
) -> tuple[Snapshot, Kept]:
    """Return what is audited of a snapshot, and what is kept of its logs; may raise CannotTell."""
    believed = _believed(configuration, taken, told)
    snapshot = taken.without(believed.untold)
    if not snapshot.partitions:
        raise CannotTell(min(snapshot.untold.values()))
    return snapshot, believed.kept


def _believed(configuration: Configuration, snapshot: Snapshot, told: Remembered) -> Believed:
    """Return what the leaders of both sites prove of it; CannotTell if one is down."""
    asked = consider(snapshot, told)
    answers = {
        side: trio.run(
            ask_epochs, configuration.clusters[site_of(snapshot, side)], asked.epochs(side)
        )
        for side in (Side.SOURCE, Side.TARGET)
    }
    return believe(snapshot, asked, answers)


def _memory(output: Path) -> earlier.Memory:
    """Return what earlier audits kept there. Raises ResultUnusable."""
    file = output / EARLIER
    try:
        return earlier.decode(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ResultUnusable(
            f"{file}: {error}; without the file an audit goes on, and remembers from then on"
        ) from error


def _next_memory(
    memory: earlier.Memory,
    snapshots: Sequence[Snapshot],
    flows: Sequence[FlowVerdict],
    topics: Collection[str],
) -> str:
    behind = {
        flow.flow: {
            TopicPartition(row["topic"], row["partition"]): first
            for row in flow.partitions
            if (first := first_behind(row)) is not None
        }
        for flow in flows
    }
    untold = {
        flow.flow: {TopicPartition(name, index): why for name, index, why in flow.untold}
        for flow in flows
    }
    known = [snapshot.without(untold[snapshot.flow]) for snapshot in snapshots]
    return earlier.encode(earlier.remembered(memory, known, behind, is_part=bool(topics)))


def wanted(flows: Sequence[tuple[FlowConfig, bool]], only: frozenset[str]) -> Sequence[TopicFilter]:
    """Return the topics of each flow to audit: if `only` names topics, those its patterns match.

    Each flow comes with whether the other direction may have run too.

    Raises CannotTell for topics that no flow's patterns match.
    """
    if not only:
        return [TopicFilter(flow=flow, is_both_ways=both) for flow, both in flows]
    filters = [
        TopicFilter(flow=flow, only=frozenset(filter(flow.moves, only)), is_both_ways=both)
        for flow, both in flows
    ]
    unmatched = only.difference(*(topic_filter.only for topic_filter in filters))
    if unmatched:
        raise CannotTell(f"no flow's patterns match {', '.join(sorted(unmatched))}")
    return [topic_filter for topic_filter in filters if topic_filter.only]


async def _snapshot(configuration: Configuration, wants: TopicFilter) -> Snapshot:
    snapshot = await take_snapshot(configuration, wants, now_ms=now_ms())
    require_still_comparable(configuration, wants.flow, snapshot, is_both_ways=wants.is_both_ways)
    return snapshot


def report_of(snapshot: Snapshot, audited: FlowResult) -> FlowVerdict:
    """Return the report; a partition of the snapshot without a row is one that is untold."""
    untold = dict(audited.untold)
    answered = {TopicPartition(row["topic"], row["partition"]) for row in audited.summary}
    for bounds in snapshot.partitions:
        place = TopicPartition(bounds.topic, bounds.partition)
        if place not in answered:
            untold.setdefault(place, f"{place}: no result came back")
    return FlowVerdict(
        flow=snapshot.flow,
        taken_ms=snapshot.taken_ms,
        promotion=snapshot.promotion,
        only_on_target=snapshot.only_on_target,
        prefix=snapshot.prefix,
        renamed=snapshot.renamed,
        partitions=tuple(audited.summary),
        untold=tuple((*partition, why) for partition, why in sorted(untold.items())),
        unaudited=snapshot.unaudited,
        settings=snapshot.settings,
        rights=snapshot.rights,
        rights_not_compared=snapshot.rights_not_compared,
    )
