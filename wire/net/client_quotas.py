"""Client quotas: how much users, client ids and addresses may use (KIP-546)."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from wire.errors import ErrorCode
from wire.messages.alter_client_quotas import (
    AlterClientQuotasEntity,
    AlterClientQuotasEntry,
    AlterClientQuotasOperation,
    AlterClientQuotasRequest,
)
from wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from wire.net.cluster import Cluster
from wire.net.errors import RequestRefused
from wire.net.retries import code_of

Entity: TypeAlias = frozenset[tuple[str, str | None]]
"""Types with names, as `user` with `alice`; None is the default of its type."""
Quotas: TypeAlias = dict[Entity, dict[str, float]]
"""The quotas of each entity, by key, as `producer_byte_rate`."""

_AT_ONCE: Final = 200


async def client_quotas(cluster: Cluster) -> Quotas:
    """Return all quotas. Raises UnsupportedApi before Apache Kafka 2.6, RequestRefused without
    DESCRIBE_CONFIGS on the cluster, and NetworkFault.
    """
    answer = await cluster.request(DescribeClientQuotasRequest(components=(), strict=False))
    if answer.error_code != ErrorCode.NONE:
        raise RequestRefused("to describe client quotas", code_of(answer.error_code))
    return {
        frozenset((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries or ()
    }


async def set_quotas(cluster: Cluster, wanted: Mapping[Entity, Mapping[str, float]]) -> None:
    """Set these keys of these entities. Raises RequestRefused and NetworkFault."""
    entities = list(wanted)
    for begin in range(0, len(entities), _AT_ONCE):
        some = entities[begin : begin + _AT_ONCE]
        request = AlterClientQuotasRequest(
            entries=tuple(_entry(entity, wanted[entity]) for entity in some), validate_only=False
        )
        answer = await cluster.request(request)
        for entity, result in zip(some, answer.entries, strict=True):
            if result.error_code != ErrorCode.NONE:
                what = f"to set quotas of {entity_words(entity)}"
                raise RequestRefused(what, code_of(result.error_code))


def entity_words(entity: Entity) -> str:
    """Return an entity as words: `user alice, client-id etl`, `every other user`."""
    return ", ".join(
        f"every other {kind}" if name is None else f"{kind} {name}"
        for kind, name in sorted(entity, reverse=True, key=lambda part: part[0])
    )


def _entry(entity: Entity, quotas: Mapping[str, float]) -> AlterClientQuotasEntry:
    parts = sorted(entity, key=lambda part: part[0])
    return AlterClientQuotasEntry(
        entity=tuple(AlterClientQuotasEntity(entity_type=t, entity_name=n) for t, n in parts),
        ops=tuple(
            AlterClientQuotasOperation(key=key, value=value, remove=False)
            for key, value in sorted(quotas.items())
        ),
    )
