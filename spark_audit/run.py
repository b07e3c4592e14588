"""One run: snapshots, Spark, the stored result. Not being able to tell is a verdict too."""

from collections.abc import Collection, Sequence
from pathlib import Path

import trio

from runtime.clock import now_ms
from runtime.config import Configuration
from runtime.java import JavaMissing
from spark_audit.bounds import Snapshot
from spark_audit.flow_audit import audit_flow
from spark_audit.prometheus import textfile
from spark_audit.scan_plan import Planner
from spark_audit.seals import CannotTell
from spark_audit.session import SparkFailed, open_session
from spark_audit.snapshot import TopicFilter, take_snapshot
from spark_audit.store import PROMETHEUS, VERDICT, Result, replace_result
from spark_audit.verdict import Answer, FlowReport, Verdict, answer_for, encode
from wire.net.security import PLAINTEXT


def run_audit(configuration: Configuration, topics: Collection[str], output: Path) -> Verdict:
    """Audit all flows, of `topics` or (empty) of all their topics, and store the result.

    An unreachable cluster or witness, a log that cannot be read and a missing Java give the
    verdict "unknown", stored like the others. Raises ResultUnusable if nothing can be stored.
    """
    started_ms = now_ms()
    with replace_result(output) as result:
        try:
            flows = _audit_flows(configuration, frozenset(topics), result)
            answer, problem = answer_for(flows), None
        except (CannotTell, JavaMissing, SparkFailed) as reason:
            flows, answer, problem = (), Answer.UNKNOWN, str(reason)
        verdict = Verdict(
            answer=answer, started_ms=started_ms, ended_ms=now_ms(), flows=flows, problem=problem
        )
        result.write_text(VERDICT, encode(verdict))
        result.write_text(PROMETHEUS, textfile(verdict))
    return verdict


def _audit_flows(
    configuration: Configuration, only: frozenset[str], result: Result
) -> tuple[FlowReport, ...]:
    _require_comparable(configuration)
    # Both clusters are asked before a JVM is started: a site that is down costs no JVM.
    snapshots = [
        trio.run(_snapshot, configuration, TopicFilter(flow=flow, only=only))
        for flow in configuration.flows
    ]
    clusters = configuration.clusters
    bootstrap = {name: cluster.bootstrap for name, cluster in clusters.items()}
    is_secured = any(cluster.security != PLAINTEXT for cluster in clusters.values())
    file = str(configuration.file) if is_secured else ""
    audit = configuration.audit
    with open_session(cores=audit.cores, driver_memory=audit.driver_memory) as spark:
        for snapshot in snapshots:
            with audit_flow(spark, snapshot, Planner(snapshot, bootstrap, file)) as frames:
                result.append(frames.findings, frames.summary)
    return _reports(snapshots, result)


def _require_comparable(configuration: Configuration) -> None:
    """Raise CannotTell for flows in both directions, and for other names on the target.

    In the first each side holds records of its own beside mirrored ones; the comparison would take
    them for phantoms and losses.
    """
    directions = {(flow.source, flow.target) for flow in configuration.flows}
    for flow in configuration.flows:
        if flow.is_prefixed:
            raise CannotTell(
                f"flow {flow.name}: auditing a flow with `names: prefixed` is not supported yet"
            )
        if (flow.target, flow.source) in directions:
            raise CannotTell(
                f"flow {flow.name}: auditing flows in both directions is not supported yet"
            )


async def _snapshot(configuration: Configuration, wants: TopicFilter) -> Snapshot:
    return await take_snapshot(configuration, wants, now_ms=now_ms())


def _reports(snapshots: Sequence[Snapshot], result: Result) -> tuple[FlowReport, ...]:
    rows = result.summary()
    return tuple(
        FlowReport(
            flow=snapshot.flow,
            taken_ms=snapshot.taken_ms,
            promotion=snapshot.promotion,
            only_on_target=snapshot.only_on_target,
            partitions=tuple(row for row in rows if row["flow"] == snapshot.flow),
        )
        for snapshot in snapshots
    )
