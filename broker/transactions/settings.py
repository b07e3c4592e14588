"""The settings of the transaction coordinator, by Kafka's names and with Kafka's defaults."""

from typing import Final

from broker.config import BrokerConfig
from wire.values import frozen

MOST_ID_BYTES: Final = 32_767
"""The longest transactional id, in UTF-8, that a record of `__transaction_state` can hold."""


@frozen
class TransactionSettings:
    """The part of a broker's configuration about transactions; times in milliseconds.

    safe_within_ms   how long an answer waits for the replicas
    """

    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    timed_out_interval_ms: int = 10_000
    expired_interval_ms: int = 3_600_000
    safe_within_ms: int = 5_000

    @staticmethod
    def of(config: BrokerConfig) -> "TransactionSettings":
        """Return what the broker's configuration says."""
        timed_out_ms = config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        expired_ms = config.transaction_remove_expired_transaction_cleanup_interval_ms
        return TransactionSettings(
            max_timeout_ms=config.transaction_max_timeout_ms,
            id_expiration_ms=config.transactional_id_expiration_ms,
            timed_out_interval_ms=timed_out_ms,
            expired_interval_ms=expired_ms,
            safe_within_ms=config.offsets_commit_timeout_ms,
        )
