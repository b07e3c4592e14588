"""What changes of topics cost their client (KIP-599), for the three requests that make them."""

from typing import Final

from broker.context import Call
from broker.quotas.mutations import MutationQuota
from wire.messages.create_partitions import CreatePartitionsRequest
from wire.messages.create_topics import CreateTopicsRequest
from wire.messages.delete_topics import DeleteTopicsRequest

MUTATING: Final = frozenset(
    one.API_KEY for one in (CreateTopicsRequest, DeleteTopicsRequest, CreatePartitionsRequest)
)
EXCEEDED: Final = "The throttling quota has been exceeded."


def mutation_quota(call: Call, strict_since: int) -> MutationQuota:
    """Return what this request may change; clients know the error since that version."""
    return call.node.quotas.mutations(
        call.principal,
        call.client_id,
        is_strict=call.api_version >= strict_since,
        now_ms=call.node.clock.monotonic_ms(),
    )


def partitions_of(call: Call, topic: str) -> int:
    """Return how many partitions a topic has, 0 for one that is not there."""
    view = call.node.metadata.topic(topic)
    return 0 if view is None else len(view.partitions)
