"""TopicPartition: the one name of a partition, in every package."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A topic's name and a partition's number.

    It equals the plain tuple of the two, hashes like it and sorts like it: by topic, then by
    number. As text it is the name of the partition's folder in Kafka, `orders-3`.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
