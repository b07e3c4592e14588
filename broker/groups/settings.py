"""The settings of the group coordinator, by Kafka's names and with Kafka's defaults."""

from enum import Enum
from typing import Final

from broker.config import BrokerConfig
from wire.values import frozen

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""How long a member that has never completed a join may wait for it.

It does not know its session yet and cannot send heartbeats, so the session timeout does not bind
it; without any limit, clients that gave up would stay in the rebalance for good.
"""

MAX_STRING_BYTES: Final = 32_767
"""The longest string, in UTF-8, that a record of `__consumer_offsets` can hold."""


class MigrationPolicy(Enum):
    """Between which protocols a group with members may change; an empty one always may."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        """Whether a member of the new protocol may join a classic group in use."""
        return self in {MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE}

    @property
    def allows_downgrade(self) -> bool:
        """Whether a group becomes classic when its last member of the new protocol leaves."""
        return self in {MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE}


@frozen
class ConsumerGroupSettings:
    """The part about groups of the new protocol (KIP-848)."""

    is_served: bool = True
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    """Those that members may ask for; the first is for groups that ask for none."""
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL


@frozen
class GroupSettings:
    """The part of a broker's configuration about groups; times in milliseconds, sizes in bytes."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    offsets_retention_check_interval_ms: int = 600_000
    offset_commit_timeout_ms: int = 5_000
    consumer: ConsumerGroupSettings = ConsumerGroupSettings()

    @staticmethod
    def of(config: BrokerConfig) -> "GroupSettings":
        """Return what the broker's configuration says."""
        return GroupSettings(
            min_session_timeout_ms=config.group_min_session_timeout_ms,
            max_session_timeout_ms=config.group_max_session_timeout_ms,
            initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
            max_size=config.group_max_size,
            offset_metadata_max_bytes=config.offset_metadata_max_bytes,
            offsets_retention_ms=config.offsets_retention_minutes * 60_000,
            offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
            offset_commit_timeout_ms=config.offsets_commit_timeout_ms,
            consumer=ConsumerGroupSettings(
                is_served="consumer" in config.group_coordinator_rebalance_protocols,
                session_timeout_ms=config.group_consumer_session_timeout_ms,
                heartbeat_interval_ms=config.group_consumer_heartbeat_interval_ms,
                max_size=config.group_consumer_max_size,
                assignors=config.group_consumer_assignors,
                migration_policy=MigrationPolicy(config.group_consumer_migration_policy),
            ),
        )
