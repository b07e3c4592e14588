"""Topics that a broker itself wants: created by the controller, here or on another broker."""

import logging
from typing import Final

from broker.config import BrokerConfig
from broker.controller.cluster import ApiError
from broker.controller.controller import Controller
from broker.controller.topics import TopicSpec
from broker.led_partition import CONSUMER_OFFSETS, TRANSACTION_STATE
from broker.metadata_cache import MetadataCache
from wire.errors import ErrorCode
from wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from wire.net.errors import NetworkFault
from wire.net.pool import ConnectionPool

_LOG = logging.getLogger(__name__)

ANSWER_WITHIN_MS: Final = 2_000
EXISTS: Final = frozenset(
    {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.REQUEST_TIMED_OUT}
)
"""REQUEST_TIMED_OUT says that the topic was created and its leaders are on their way."""


_FACTORS: Final = {
    CONSUMER_OFFSETS: "offsets.topic.replication.factor",
    TRANSACTION_STATE: "transaction.state.log.replication.factor",
}


def internal_topic(name: str, config: BrokerConfig) -> TopicSpec:
    """Return how an internal topic is to be made."""
    if name == TRANSACTION_STATE:
        return TopicSpec(
            name=name,
            partitions=config.transaction_state_log_num_partitions,
            replication_factor=config.transaction_state_log_replication_factor,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(config.transaction_state_log_min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    assert name == CONSUMER_OFFSETS, f"{name} is not served"
    return TopicSpec(
        name=name,
        partitions=config.offsets_topic_num_partitions,
        replication_factor=config.offsets_topic_replication_factor,
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
    )


class TopicCreation:
    """Asks the controller, wherever it is."""

    def __init__(
        self,
        config: BrokerConfig,
        controller: Controller,
        metadata: MetadataCache,
        pool: ConnectionPool,
    ) -> None:
        self._config = config
        self._controller = controller
        self._metadata = metadata
        self._pool = pool
        self._complained_of: set[str] = set()

    async def create(self, spec: TopicSpec) -> ErrorCode:
        """Create the topic; NONE also when it exists. LEADER_NOT_AVAILABLE: ask again."""
        if self._controller.is_active:
            created = await self._controller.create_topic(spec)
            error = created.error if isinstance(created, ApiError) else ErrorCode.NONE
        else:
            error = await self._ask_controller(spec)
        if error is ErrorCode.NOT_CONTROLLER:
            return ErrorCode.LEADER_NOT_AVAILABLE
        return ErrorCode.NONE if error in EXISTS else error

    async def ensure_internal(self, name: str) -> ErrorCode:
        """Create an internal topic by the settings that Kafka has for it."""
        if self._metadata.topic(name) is not None:
            return ErrorCode.NONE
        spec = internal_topic(name, self._config)
        error = await self.create(spec)
        is_short = error is ErrorCode.INVALID_REPLICATION_FACTOR
        if is_short and name not in self._complained_of:
            _LOG.warning(
                "%s waits for %s brokers (%s), %s are alive: %s cannot be served before; harmless "
                "while the cluster starts",
                name,
                spec.replication_factor,
                _FACTORS[name],
                len(self._metadata.brokers),
                "groups" if name == CONSUMER_OFFSETS else "transactions",
            )
            self._complained_of.add(name)
        elif not is_short:
            self._complained_of.discard(name)
        return error

    async def _ask_controller(self, spec: TopicSpec) -> ErrorCode:
        controller = self._metadata.brokers.get(self._metadata.controller_id)
        if controller is None:
            return ErrorCode.NOT_CONTROLLER
        request = CreateTopicsRequest(
            topics=(
                CreatableTopic(
                    name=spec.name,
                    num_partitions=spec.partitions,
                    replication_factor=spec.replication_factor,
                    assignments=(),
                    configs=tuple(
                        CreatableTopicConfig(name=name, value=value)
                        for name, value in spec.configs.items()
                    ),
                ),
            ),
            timeout_ms=ANSWER_WITHIN_MS,
        )
        try:
            connection = await self._pool.connection((controller.host, controller.port))
            response = await connection.request(request)
        except NetworkFault as fault:
            _LOG.warning("the controller cannot be asked for topic %s: %s", spec.name, fault)
            return ErrorCode.NOT_CONTROLLER
        return ErrorCode(response.topics[0].error_code)
