"""The part of the broker's settings that the controller reads, static and dynamic."""

from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from broker.config import BrokerConfig
from broker.controller.topics import TopicSpec
from broker.dynamic_config import DynamicConfig
from broker.inter_broker import inter_broker_connections
from broker.security.brokers import ClusterBrokers
from wire.net.connecting import ConnectionSettings


@dataclass(slots=True, kw_only=True)
class ControllerSettings:
    """Names as in server.properties.

    defaults                     what a new topic gets that does not say
    connections                  how brokers come to each other
    is_unclean_election_allowed  of a topic, as it is set now
    """

    defaults: TopicSpec
    is_unclean_election_allowed: Callable[[str], bool]
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_seconds: float = 300
    leader_imbalance_per_broker_percentage: int = 10
    connections: ConnectionSettings = field(
        default_factory=lambda: ConnectionSettings(client_id="controller")
    )
    changed: trio.Event = field(default_factory=trio.Event)
    """Set, and replaced, when a dynamic setting has changed."""

    def note_change(self) -> None:
        """Wake who waits for a change of settings."""
        changed, self.changed = self.changed, trio.Event()
        changed.set()


def settings_of(
    config: BrokerConfig, dynamic: DynamicConfig, brokers: ClusterBrokers
) -> ControllerSettings:
    """Return what a broker's own settings come to for its controller."""
    return ControllerSettings(
        defaults=TopicSpec(
            name="",
            partitions=config.num_partitions,
            replication_factor=config.default_replication_factor,
        ),
        is_unclean_election_allowed=lambda topic: (
            dynamic.log_config(topic).unclean_leader_election_enable
        ),
        auto_leader_rebalance_enable=config.auto_leader_rebalance_enable,
        leader_imbalance_check_interval_seconds=config.leader_imbalance_check_interval_seconds,
        leader_imbalance_per_broker_percentage=config.leader_imbalance_per_broker_percentage,
        connections=inter_broker_connections(config, brokers, client_id="controller"),
    )
