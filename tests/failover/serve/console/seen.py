"""What a console has seen, without clusters: sites where all is well, and many partitions."""

import re
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Final
from uuid import UUID

from failover.journal.commands_given import GivenCommand
from failover.journal.facts import Facts
from failover.journal.journal import Journal, begin_step, end_step
from failover.journal.steps import ORDER, PromotionKind, StepName, StepState
from failover.planning.loss import Loss, estimate
from failover.planning.readiness import IfLost, Readiness
from failover.rehearsal.judgement import LoadVerdict
from failover.rehearsal.outcome import Rehearsal, RehearsalState, RehearsedLeg, SetOutlook
from failover.serve.console.audits import AuditSeen
from failover.serve.console.differences import DifferencesSeen
from failover.serve.console.mirrors import SummariesSeen
from failover.serve.console.overview import OverviewSeen, SetSeen
from failover.serve.console.rehearsals import RehearsalsSeen
from failover.serve.console.sites import ClusterSeen
from failover.serve.peek.answer import PeekAnswer
from failover.serve.peek.bounds import PeekBounds
from failover.serve.peek.counterparts import Counterpart
from failover.serve.peek.look import Ended, Excerpt, PeekedRecord, PeekLook, TransactionState
from failover.serve.peek.question import PeekQuestion
from failover.view.divergent_parts import Listed, Tally, What
from failover.view.status import FlowStatus, SiteStatus, Status
from runtime.console.flow_lines import FlowsSeen, GroupLine, PartitionLine
from runtime.console.flow_summary import FlowSummary, LagSample
from runtime.console.frame import PageParts
from runtime.coordination.known_ends import KnownEnd, KnownEnds
from runtime.coordination.witness import ActiveSite, WorkerInfo
from wire.net import BrokerView, ClusterView, PartitionView, TopicView
from wire.topic_partition import TopicPartition

NOW_MS: Final = 1_790_000_000_000
HOSTILE: Final = "\"><script>alert(1)</script>\x1b[2J\u202egro\x00up&amp;'"
ORDERS: Final = TopicPartition("orders", 0)
FILE: Final = Path("/etc/kafka-dr/dc.yaml")


def loss(records: int, *, now_ms: int = NOW_MS) -> Loss:
    """What is lost where the mirror is so many records behind."""
    end = KnownEnd(end=1_000 + records, heard_ms=now_ms, level_ms=now_ms - 400, is_last_word=True)
    known = KnownEnds(at_ms=now_ms, ends={ORDERS: end})
    return estimate(known, {ORDERS: 1_000}, {ORDERS: 1_000}, now_ms)


def site(name: str, *, is_active: bool, fault: str | None = None) -> SiteStatus:
    """A site that answers, closed where it is the standby."""
    fenced = () if is_active or fault else ("orders", "payments", "departures")
    return SiteStatus(
        name=name, is_active=is_active, fault=fault, fenced_topics=fenced, allowed_clients=()
    )


def status(*, unfinished: Journal | None = None, fault: str | None = None) -> Status:
    """Of two sites, dc1 active; with `fault` dc1 does not answer."""
    worker = WorkerInfo(host="mirror-1", pid=812, metrics_url="http://mirror-1:9401", started_ms=0)
    out = FlowStatus(
        name="dc1->dc2", is_out_of_active=True, worker=worker, command=None, acknowledged=None
    )
    back = replace(out, name="dc2->dc1", is_out_of_active=False)
    return Status(
        active=ActiveSite(
            site="dc1", epoch=2, moving_to=None if unfinished is None else unfinished.site
        ),
        sites=(site("dc1", is_active=True, fault=fault), site("dc2", is_active=False)),
        flows=(out, back),
        unfinished=unfinished,
        last=None,
    )


def running(now_ms: int = NOW_MS) -> Journal:
    """A promotion that is draining."""
    journal = Journal(
        epoch=3, site="dc2", source="dc1", kind=PromotionKind.PLANNED, started_ms=now_ms - 4_000
    )
    at_ms = now_ms - 4_000
    for step in ORDER[PromotionKind.PLANNED]:
        journal = begin_step(journal, step, at_ms)
        if step is StepName.DRAIN:
            return journal
        at_ms += 350
        facts: Facts = {"topics": {"orders": 6}, "fence": []} if step is StepName.PREFLIGHT else {}
        if step is StepName.FENCE:
            facts = {"fenced": True, "partitions": 6}
        journal = end_step(journal, step, state=StepState.DONE, facts=facts, now_ms=at_ms)
    raise AssertionError("a planned promotion drains")


def summary(
    name: str = "dc1->dc2", *, partitions: int = 21, lag: int | None = 12, now_ms: int = NOW_MS
) -> FlowSummary:
    """A flow that streams, with an hour of history in which it was not always known."""
    history = [
        LagSample(
            now_ms - (720 - i) * 5_000,
            None if 300 < i < 320 else (i * 37) % 90 + (800 if 500 < i < 530 else 0),
            None if 300 < i < 320 else 0.4,
        )
        for i in range(720)
    ]
    return FlowSummary(
        flow=name,
        role="running",
        reason="",
        faults=(),
        taken_ms=now_ms - 2_000,
        states={"streaming": partitions},
        groups=3,
        lag_records=lag,
        lag_seconds=None if lag is None else 0.4,
        lost_records=0,
        history=history,
    )


def audit(*, answer: str | None = "clean", now_ms: int = NOW_MS) -> AuditSeen:
    """The verdict of last night."""
    return AuditSeen(
        folder=FILE.parent / "audit",
        answer=answer,
        ended_ms=now_ms - 5 * 3_600_000,
        why_not=None if answer else "no verdict is there",
        now_ms=now_ms,
    )


def set_seen(
    *,
    found: Status | None = None,
    why_not: str = "",
    readiness: Sequence[Readiness] | None = None,
    verdict: AuditSeen | None = None,
    name: str = "",
    now_ms: int = NOW_MS,
) -> SetSeen:
    """A set at which all is well unless something is given."""
    well = Readiness(
        site="dc2",
        source="dc1",
        lag=12,
        groups=3,
        if_lost=IfLost(loss=loss(12, now_ms=now_ms)),
    )
    return SetSeen(
        name=name,
        status=found if found is not None or why_not else status(),
        why_not=why_not,
        readiness=[well] if readiness is None else readiness,
        looked_ms=now_ms - 3_000,
        why_not_ready="",
        audit=verdict or audit(now_ms=now_ms),
    )


def overview(
    *sets: SetSeen, summaries: SummariesSeen | None = None, now_ms: int = NOW_MS
) -> OverviewSeen:
    """All that the first page shows; all is well unless something is given."""
    flows = SummariesSeen(flows=[summary(now_ms=now_ms)])
    return OverviewSeen(
        sets=sets or [set_seen(now_ms=now_ms)],
        summaries=summaries or flows,
        file=FILE,
        rehearsals=rehearsals(now_ms=now_ms),
    )


def many(partitions: int, groups: int, *, now_ms: int = NOW_MS) -> FlowsSeen:
    """So many of each; one partition stands still, one group has a hostile name."""
    lines = [
        PartitionLine(
            flow="dc1->dc2",
            topic=f"topic-{number // 10}",
            partition=number % 10,
            state="streaming",
            since_ms=now_ms - 90_000,
            reason="",
            advice="",
            lag_records=number % 7,
            lag_seconds=0.1,
            lost=0,
            skipped=0,
            worker="mirror-1:812",
        )
        for number in range(partitions)
    ]
    lines[partitions // 2] = lines[partitions // 2]._replace(
        state="retention overrun",
        reason="the source's log start has passed the mirror",
        advice="`mirror resume` continues behind what is lost",
        lag_records=None,
        lag_seconds=None,
    )
    named = [
        GroupLine(
            flow="dc1->dc2",
            group=f"group-{number}",
            partitions=10,
            lag=number % 50,
            lag_seconds=0.1,
            reread=0,
            unknown=0,
            waiting=(),
        )
        for number in range(groups)
    ]
    named[0] = named[0]._replace(group=HOSTILE, reread=None, unknown=4, waiting=("busy",))
    return FlowsSeen(looked_ms=now_ms, partitions=lines, groups=named)


def sites(*, now_ms: int = NOW_MS) -> list[ClusterSeen]:
    """Two sites of three brokers; one replica of dc2 lags, and dc3 does not answer."""
    brokers = {
        node: BrokerView(node_id=node, host=f"kafka-{node}.example.com", port=9092, rack="a")
        for node in (1, 2, 3)
    }
    found = []
    for name in ("dc1", "dc2"):
        isr = (1, 2, 3) if name == "dc1" else (1, 2)
        topics = {
            topic: TopicView(
                name=topic,
                topic_id=UUID(int=1),
                partitions={
                    index: PartitionView(
                        leader=1 + index % 3, leader_epoch=4, replicas=(1, 2, 3), isr=isr
                    )
                    for index in range(6)
                },
            )
            for topic in ("departures", "orders", "payments")
        }
        view = ClusterView(cluster_id=name, controller_id=2, brokers=brokers, topics=topics)
        sizes = {
            (1 + index % 3, TopicPartition(topic, index)): 734_003_200 * (index + 1)
            for topic in topics
            for index in range(6)
        }
        free = dict.fromkeys(brokers, (412_316_860_416, 1_099_511_627_776))
        found.append(ClusterSeen(name=name, view=view, sizes=sizes, free=free, looked_ms=now_ms))
    return [*found, ClusterSeen(name="dc3", fault="connection refused", looked_ms=now_ms)]


def differences(*, now_ms: int = NOW_MS) -> DifferencesSeen:
    """Two records that only dc2 has, one under a hostile key."""
    seen = DifferencesSeen(looked_ms=now_ms, tally=Tally(pending=2))
    for offset, key in ((41, b"order-41"), (42, HOSTILE.encode())):
        seen.tell(
            Listed(
                what=What.ONLY_THERE,
                site="dc2",
                topic="orders",
                partition=0,
                offset=offset,
                timestamp_ms=now_ms - 60_000,
                key=key,
            )
        )
    seen.tell("orders-0: dc2 alone has 2 records at offsets 41 to 42")
    return seen


def rehearsals(*, now_ms: int = NOW_MS) -> RehearsalsSeen:
    """One was refused for a hostile reason, one has failed, and one has passed last night."""
    leg = RehearsedLeg(
        site="dc2",
        epoch=8,
        rto_ms=2_140,
        closed_ms=1_310,
        writers_ms=1_720,
        readers_ms=1_905,
        steps={"preflight": 310, "fence": 122, "drain": 640, "switch": 41, "confirm": 233},
    )
    load = LoadVerdict(
        acknowledged=2_316,
        lost=0,
        doubled=0,
        out_of_order=0,
        unsettled=0,
        refused=0,
        reread=0,
        unread=0,
        uncopied=0,
    )
    day_ms = 86_400_000
    passed = Rehearsal(
        number=12,
        site="dc2",
        home="dc1",
        started_ms=now_ms - day_ms // 3,
        ended_ms=now_ms - day_ms // 3 + 61_000,
        given=GivenCommand(
            what="failover rehearse dc2", user="jo", host="ops-1", at_ms=now_ms - day_ms // 3
        ),
        state=RehearsalState.PASSED,
        legs=(leg, replace(leg, site="dc1", epoch=9, rto_ms=1_980)),
        load=load,
        applications=(
            SetOutlook(set="default", site="dc2", ready=True, reason=None),
            SetOutlook(set="payments", site="dc2", ready=None, reason="nobody answers"),
        ),
    )
    failed = replace(
        passed,
        number=11,
        started_ms=now_ms - day_ms,
        state=RehearsalState.FAILED,
        reason="4 records read again",
        legs=(replace(leg, readers_ms=None),),
        load=replace(load, reread=4),
    )
    refused = replace(
        passed,
        number=10,
        started_ms=now_ms - 2 * day_ms,
        state=RehearsalState.REFUSED,
        reason=f"promotions are held by {HOSTILE}",
        legs=(),
        load=None,
    )
    return RehearsalsSeen(kept=[refused, failed, passed])


def question() -> PeekQuestion:
    """A question about the first partition of `orders`."""
    return PeekQuestion(site="dc1", place=ORDERS, offset=40)


def peeked(offset: int, **changes: object) -> PeekedRecord:
    """A record with a key, a value and a header."""
    value = b'{"order": 41, "state": "paid"}'
    record = PeekedRecord(
        offset=offset,
        timestamp_ms=NOW_MS,
        is_append_time=False,
        key=Excerpt(b"order-41", 8),
        value=Excerpt(value, len(value)),
        headers=(("trace", Excerpt(b"\x00\xff", 2)),),
        more_headers=0,
        leader_epoch=4,
        producer_id=4_000,
        state=TransactionState.NONE,
    )
    return replace(record, **changes)  # type: ignore[arg-type]


def peek_answer() -> PeekAnswer:
    """Four records, of which one was aborted and one has a hostile value."""
    look = PeekLook(start=40, end=5_000, stable_end=4_990)
    hostile = HOSTILE.encode()
    look.records += [
        peeked(40),
        peeked(41, state=TransactionState.COMMITTED),
        peeked(42, state=TransactionState.ABORTED, value=Excerpt(hostile * 40, 9_000)),
        peeked(43, state=TransactionState.COMMIT_MARKER, headers=()),
    ]
    look.looked, look.read_bytes, look.next_offset, look.ended = 4, 612, 44, Ended.TIME
    return PeekAnswer(
        question=question(),
        bounds=PeekBounds(start=10, end=5_000, stable_end=4_990),
        look=look,
        counterparts={
            40: [Counterpart(site="dc2", offset=1_039)],
            41: [Counterpart(site="dc2", offset=1_040)],
            42: [Counterpart(site="dc2", why_not="the map has a hole there: an aborted record")],
            43: [Counterpart(site="dc2", why_not="the mirror carries no control record")],
        },
        took_ms=38,
    )


def words(parts: PageParts) -> str:
    """Return what a reader sees of a page."""
    html = " ".join(part.html for part in parts.parts)
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)))
