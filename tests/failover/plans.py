"""A pair of sites at which all is well, and what may be asked of it."""

from failover.journal.journal import Journal, begin_step, end_step
from failover.journal.steps import PromotionKind, PromotionState, StepName, StepState
from failover.planning.plan import (
    PromotionRequest,
    SitesView,
    SiteView,
)
from failover.view.status import SiteStatus, Status
from runtime.configuration.config import FlowConfig, PatternSet
from runtime.coordination.witness import ActiveSite
from wire.topic_partition import TopicPartition

ENDS = {TopicPartition("orders", 0): 100, TopicPartition("orders", 1): 50}
DC1 = SiteView(name="dc1", fault=None, ends=ENDS, groups={"billing": 2, "idle": 0})
DC2 = SiteView(
    name="dc2",
    fault=None,
    ends={TopicPartition("orders", 0): 90, TopicPartition("orders", 1): 50},
    groups={},
)
ALL_WELL = SitesView(
    sites=frozenset({"dc1", "dc2"}),
    active="dc1",
    last_epoch=4,
    unfinished=None,
    flow="dc1->dc2",
    worker="process 7 on host",
    source=DC1,
    target=DC2,
    mirrored={TopicPartition("orders", 0): 90, TopicPartition("orders", 1): 50},
)


PLANNED = PromotionRequest(site="dc2", kind=PromotionKind.PLANNED)


def last_promotion() -> Journal:
    """dc1 was lost, and two topics moved to dc2."""
    journal = Journal(
        epoch=1,
        site="dc2",
        source="dc1",
        kind=PromotionKind.SOURCE_LOST,
        state=PromotionState.DONE,
        started_ms=0,
    )
    journal = begin_step(journal, StepName.PREFLIGHT, 0)
    return end_step(
        journal,
        StepName.PREFLIGHT,
        state=StepState.DONE,
        facts={"topics": {"b": 1, "a": 3}},
        now_ms=0,
    )


def site(name: str, *fenced: str, fault: str | None = None) -> SiteStatus:
    """A site as the status shows it."""
    return SiteStatus(
        name=name,
        is_active=name == "dc2",
        fault=fault,
        fenced_topics=fenced,
        allowed_clients=(),
    )


BACK = Status(
    active=ActiveSite(site="dc2", epoch=1),
    sites=(site("dc1"), site("dc2")),
    flows=(),
    unfinished=None,
    last=None,
    switched=last_promotion(),
)


NOTHING = PatternSet(include=(), exclude=())
FLOW = FlowConfig(
    name="dc1->dc2",
    source="dc1",
    target="dc2",
    topics=NOTHING,
    groups=NOTHING,
    replication_factor=None,
    fetch_max_bytes=1,
    partition_fetch_bytes=1,
    partition_in_flight_bytes=1,
    in_flight_bytes=1,
    discovery_interval_ms=1,
    are_groups_polled=False,
    group_poll_interval_ms=1_000,
    group_offsets_interval_ms=1,
)
