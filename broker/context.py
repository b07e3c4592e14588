"""The node as its handlers see it, and what surrounds one request.

`broker.node.BrokerNode` is the real thing; tests may put any object of the same shape here.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Protocol

from broker.authorizer.acl_watch import AclWatch
from broker.authorizer.authorizer import EVERY_RIGHT, Rights
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.controller.controller import Controller
from broker.controller.topics import TopicSpec
from broker.dynamic_config import DynamicConfig
from broker.fairness import Aside
from broker.groups.coordinator import GroupCoordinator
from broker.log.log_manager import LogManager
from broker.metadata_cache import MetadataCache
from broker.metrics import RequestMetrics
from broker.quotas.client_quotas import ClientQuotas
from broker.quotas.entity import QuotaEntity
from broker.replication.partition import Partition
from broker.replication.partitions import Partitions
from broker.security.brokers import ClusterBrokers
from broker.security.credentials import ScramUsers
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.verification import Verifier
from broker.zookeeper.store import Change, ClusterStore
from wire.errors import ErrorCode
from wire.values import frozen


class Node(Protocol):
    """One broker as its handlers see it."""

    @property
    def broker_id(self) -> int: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def metadata(self) -> MetadataCache:
        """The cluster as the controller has told it to this broker."""

    @property
    def logs(self) -> LogManager:
        """The logs on this broker's disks."""

    @property
    def partitions(self) -> Partitions:
        """The replicas on this broker."""

    @property
    def groups(self) -> GroupCoordinator:
        """The coordinator of consumer groups.

        The node builds it as `GroupCoordinator(node)`, runs `await nursery.start(groups.run)` (a
        method with `task_status`) for its whole life, and registers it as the LeadershipListener of
        `__consumer_offsets`.
        """

    @property
    def transactions(self) -> TransactionCoordinator:
        """The coordinator of transactional ids; the node runs it as it runs `groups`."""

    @property
    def verifier(self) -> Verifier:
        """The part that asks a transaction's coordinator before the first batch is appended."""

    @property
    def store(self) -> ClusterStore:
        """The cluster's tree in ZooKeeper."""

    @property
    def controller(self) -> Controller:
        """This broker's part in the controller election; `is_active` while it is the one."""

    @property
    def dynamic(self) -> DynamicConfig:
        """The settings that change while the broker runs."""

    @property
    def metrics(self) -> RequestMetrics: ...
    @property
    def scram_users(self) -> ScramUsers:
        """The SCRAM credentials that ZooKeeper holds."""

    @property
    def quotas(self) -> ClientQuotas:
        """The quotas of clients, and what they have moved here."""

    async def change_quotas(self, entity: QuotaEntity, change: Change) -> None:
        """Change the quotas of somebody on every broker; raises ZooKeeperFault."""

    @property
    def acls(self) -> AclWatch | None:
        """The access control entries, None where no authorizer is set."""

    def reconfigure(self) -> None:
        """Let everybody know that dynamic settings have changed."""

    async def ensure_internal_topic(self, name: str) -> ErrorCode:
        """Create the internal topic if it does not exist, by the broker's own settings for it.

        NONE means that it exists or has just been written; its leaders may not be known yet.
        """

    async def create_topic(self, spec: TopicSpec) -> ErrorCode:
        """Create a topic by the controller, wherever it is; NONE also when it exists already."""

    def led(self, topic: str, index: int) -> Partition | ErrorCode:
        """Return the partition if this broker leads it, else what to answer a client."""

    async def next_producer_id(self) -> int:
        """Return a producer id that nobody has; raises ZooKeeperFault when no block can be had."""

    @property
    def cluster_brokers(self) -> ClusterBrokers:
        """The brokers of this cluster, as far as they have proved that they are."""

    async def has_elected(self, controller_epoch: int) -> bool:
        """Say whether ZooKeeper has given this epoch to a controller; raises ZooKeeperFault."""

    async def is_registered_as(self, broker_epoch: int) -> bool:
        """Say whether a controller that names this epoch means this life of the broker."""

    async def wait_metadata(self) -> None:
        """Wait (a bounded time) until a controller has told this broker about the cluster."""

    async def know_topics(self, names: Sequence[str]) -> None:
        """Read the settings of topics that are new to this broker; raises ZooKeeperFault."""


@frozen
class Call:
    """The surroundings of one request: its node, its client and its version."""

    node: Node
    api_version: int
    client_id: str | None
    client_host: str
    """The peer's address; Kafka shows it to users as `/127.0.0.1`."""
    listener: str = "PLAINTEXT"
    """By which it came in: it is told the addresses of that listener (KIP-103)."""
    principal: str = "User:ANONYMOUS"
    is_broker: bool = False
    """Whether it comes from a broker of this cluster (`broker.security.brokers`)."""
    rights: Rights = EVERY_RIGHT
    """The client's rights; guards have asked already of all that the request names by itself."""
    aside: Aside = field(default_factory=Aside)
    """Where it does what would stop the others."""


class Handler(Protocol):
    """`broker/apis/<api>.py: async def handle(request, call) -> response`.

    Registered in `broker.apis.table`. The response's class must be `type(request).RESPONSE`.
    """

    async def __call__(self, request: Any, call: Call) -> Any: ...  # noqa: ANN401 - one per API
