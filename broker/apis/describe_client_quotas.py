"""DescribeClientQuotas: the quotas that are set, as this broker knows them (KIP-546)."""

from enum import IntEnum

from broker.apis.quota_requests import BadQuota, check_types, travelling
from broker.context import Call
from broker.fairness import Turns
from broker.quotas.entity import DEFAULT, Default, QuotaEntity
from wire.errors import ErrorCode
from wire.messages.describe_client_quotas import (
    DescribeClientQuotasComponent,
    DescribeClientQuotasEntity,
    DescribeClientQuotasEntry,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeClientQuotasValue,
)


class MatchType(IntEnum):
    """The way in which a component of a filter matches."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


async def handle(request: DescribeClientQuotasRequest, call: Call) -> DescribeClientQuotasResponse:
    """Answer with every entity that all components match."""
    try:
        _check(request)
    except BadQuota as reason:
        return DescribeClientQuotasResponse(
            error_code=ErrorCode.INVALID_REQUEST, error_message=str(reason)
        )
    turns = Turns()
    entries: list[DescribeClientQuotasEntry] = []
    for entity, quotas in list(call.node.quotas.table.all().items()):
        await turns.pass_on()
        if not finds(request, entity):
            continue
        entries.append(
            DescribeClientQuotasEntry(
                entity=tuple(
                    DescribeClientQuotasEntity(entity_type=kind, entity_name=name)
                    for kind, name in travelling(entity.parts())
                ),
                values=tuple(
                    DescribeClientQuotasValue(key=key, value=value)
                    for key, value in sorted(quotas.items())
                ),
            )
        )
    return DescribeClientQuotasResponse(error_code=ErrorCode.NONE, entries=tuple(entries))


def _check(request: DescribeClientQuotasRequest) -> None:
    types = [component.entity_type for component in request.components]
    if len(set(types)) < len(types):
        raise BadQuota("A type of entity stands in the filter twice")
    check_types(types)
    for component in request.components:
        _match(component)


def _match(component: DescribeClientQuotasComponent) -> MatchType:
    try:
        match = MatchType(component.match_type)
    except ValueError:
        raise BadQuota(f"Unknown match type: {component.match_type}") from None
    if (match is MatchType.EXACT) is (component.match is None):
        raise BadQuota(f"A match of type {match.name} with the name {component.match!r:.80}")
    return match


def finds(request: DescribeClientQuotasRequest, entity: QuotaEntity) -> bool:
    """Say whether a filter, which has been checked, matches an entity."""
    parts = entity.parts()
    if request.strict and len(parts) > len(request.components):
        return False
    return all(_matches(one, parts.get(one.entity_type)) for one in request.components)


def _matches(component: DescribeClientQuotasComponent, name: str | Default | None) -> bool:
    match _match(component):
        case MatchType.EXACT:
            return name == component.match
        case MatchType.DEFAULT:
            return name is DEFAULT
        case MatchType.ANY:
            return name is not None
