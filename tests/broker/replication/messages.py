"""What is under way between the replicas of the machine, and the brokers that it is between."""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from broker.replication.in_sync import PendingIsrChange
from broker.replication.leadership import Leadership
from broker.replication.partition import Partition
from broker.replication.truncation import Divergence
from tests.broker.replication.list_log import Entry, ListLog


@dataclass(frozen=True, slots=True)
class Fetch:
    """A follower's request: from where on, and what it knows of its own history."""

    leader: int
    leader_epoch: int
    offset: int
    last_epoch: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """The leader's answer to it."""

    to: Fetch
    entries: tuple[Entry, ...] = ()
    high_watermark: int = 0
    divergence: Divergence | None = None
    ends_at: int | None = None
    """For a follower that is out of range: where the leader's log ends."""


class Fate(Enum):
    """What becomes of a request for an ISR."""

    ANSWERED = "it arrives and is answered"
    LOST = "it never arrives"
    ANSWER_LOST = "it arrives, and its answer does not"
    LATE = "the leader gives it up, and it is still on its way"


@dataclass(slots=True)
class Asked:
    """One copy of a request for an ISR, on its way to the controller."""

    number: int
    change: PendingIsrChange
    is_awaited: bool = True


@dataclass(slots=True)
class Broker:
    """One process and its files; `partition` is None while it is down."""

    log: ListLog
    saved_high_watermark: int = 0
    partition: Partition | None = None
    inbox: deque[Leadership] = field(default_factory=deque)
    request: Fetch | None = None
    answer: Fetched | None = None
