"""A flow that chooses topics, and topics as metadata shows them."""

import re
from dataclasses import replace
from uuid import UUID

from runtime.configuration.config import PatternSet
from tests.mirror.building import CONFIG
from wire.net.metadata import PartitionView, TopicView

FLOW = replace(
    CONFIG,
    topics=PatternSet(
        include=(re.compile("orders.*"), re.compile("__.*")), exclude=(re.compile(".*-tmp"),)
    ),
)


PARTITION = PartitionView(leader=0, leader_epoch=0, replicas=(0,), isr=(0,), error_code=0)


def topic(
    name: str, *, error: int = 0, is_internal: bool = False, partitions: int = 1
) -> TopicView:
    return TopicView(
        name=name,
        topic_id=UUID(int=1),
        error_code=error,
        is_internal=is_internal,
        partitions=dict.fromkeys(range(partitions), PARTITION),
    )
