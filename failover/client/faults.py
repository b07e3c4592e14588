"""librdkafka's error codes that the client tells apart; the library spells its own with `_`."""

from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message

from wire.topic_partition import TopicPartition

PARTITION_EOF: Final = KafkaError._PARTITION_EOF  # noqa: SLF001 - the library's public constant
TIMED_OUT: Final = KafkaError._TIMED_OUT  # noqa: SLF001 - as above
STATE: Final = KafkaError._STATE  # noqa: SLF001 - as above
FATAL: Final = KafkaError._FATAL  # noqa: SLF001 - as above
GAP: Final = KafkaError._GAPLESS_GUARANTEE  # noqa: SLF001 - as above
TLS_FAILED: Final = KafkaError._SSL  # noqa: SLF001 - as above
NO_TOKEN: Final = KafkaError.SASL_AUTHENTICATION_FAILED
"""What confluent-kafka raises where it has waited in vain for a client's first token."""
NOT_LET_IN: Final = frozenset(
    {
        KafkaError._AUTHENTICATION,  # noqa: SLF001 - as above
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.ILLEGAL_SASL_STATE,
    }
)
NO_RIGHT_TO_GROUP: Final = KafkaError.GROUP_AUTHORIZATION_FAILED
NO_SUCH_PARTITION: Final = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - as above
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - as above
    }
)


def reason_of(error: KafkaException) -> KafkaError:
    """Return the error that an exception carries."""
    reason = error.args[0]
    assert isinstance(reason, KafkaError), "confluent-kafka raises with its own error inside"
    return reason


def code_of(error: KafkaException) -> int:
    """Return the Kafka or librdkafka error code that an exception carries."""
    return int(reason_of(error).code())


def offset_of(message: Message) -> int:
    """Return the offset of a message that came from a log."""
    offset = message.offset()
    assert offset is not None, "what was read from a log has an offset"
    return offset


def partition_of(message: Message) -> TopicPartition:
    """Return topic and partition of a message that came from or went to a log."""
    topic, partition = message.topic(), message.partition()
    assert topic is not None, "what was read from a log has a topic"
    assert partition is not None, "what was read from a log has a partition"
    return TopicPartition(topic, partition)
