"""AlterClientQuotas: set and remove quotas in ZooKeeper, where Kafka has them (KIP-546).

Any broker takes it: a write in ZooKeeper is checked against what was read.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from broker.apis.quota_requests import BadQuota, entity_of
from broker.context import Call
from broker.quotas.entity import QUOTAS, RATES, QuotaEntity
from runtime.coordination.zookeeper import ZooKeeperFault
from wire.errors import ErrorCode
from wire.messages.alter_client_quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasOperation,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResult,
)


async def handle(request: AlterClientQuotasRequest, call: Call) -> AlterClientQuotasResponse:
    """Answer for each entity by itself."""
    return AlterClientQuotasResponse(
        entries=tuple(
            [
                await _alter(entry, call, validate_only=request.validate_only)
                for entry in request.entries
            ]
        )
    )


async def _alter(
    entry: AlterClientQuotasEntry, call: Call, *, validate_only: bool
) -> AlterClientQuotasResult:
    error, message = ErrorCode.NONE, None
    try:
        entity = entity_of(entry.entity)
        check(entity, entry.ops)
        if not validate_only:
            await call.node.change_quotas(entity, partial(changed, entry.ops))
    except BadQuota as reason:
        error, message = ErrorCode.INVALID_REQUEST, str(reason)
    except ZooKeeperFault as fault:
        error, message = ErrorCode.UNKNOWN_SERVER_ERROR, f"not stored: {fault}"
    return AlterClientQuotasResult(error_code=error, error_message=message, entity=entry.entity)


def check(entity: QuotaEntity, operations: Sequence[AlterClientQuotasOperation]) -> None:
    """Raise BadQuota for an operation that cannot be, or would set what nobody obeys here."""
    for key, times in Counter(one.key for one in operations).items():
        if times > 1:
            raise BadQuota(f"Duplicate quota key {key!r:.80}")
    for one in operations:
        if one.remove:
            continue
        if entity.ip is not None or one.key not in QUOTAS:
            served = ", ".join(sorted(QUOTAS))
            raise BadQuota(f"Invalid quota key {one.key!r:.80}: only {served} are obeyed here")
        if not (math.isfinite(one.value) and one.value > 0):
            raise BadQuota(f"Quota {one.key} must be greater than 0")
        if one.key in RATES and not one.value.is_integer():
            raise BadQuota(f"Quota {one.key} must be a whole number of bytes")


def changed(
    operations: Sequence[AlterClientQuotasOperation], present: Mapping[str, str]
) -> Mapping[str, str]:
    """Return what is kept of an entity after the operations."""
    after = dict(present)
    for one in operations:
        if one.remove:
            after.pop(one.key, None)
        else:
            after[one.key] = str(int(one.value) if one.key in RATES else one.value)
    return after
