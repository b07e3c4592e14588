"""DeleteAcls: remove the access control entries that filters find, in ZooKeeper."""

from broker.apis.acl_requests import NO_AUTHORIZER, BadAcl, filter_of
from broker.authorizer.acl_watch import AclWatch
from broker.context import Call
from broker.zookeeper.tree import MalformedNode
from runtime.coordination.zookeeper import ZooKeeperFault
from wire.acls import AclFilter, ResourcePattern
from wire.errors import ErrorCode
from wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


async def handle(request: DeleteAclsRequest, call: Call) -> DeleteAclsResponse:
    """Answer for each filter with what it has removed."""
    acls = call.node.acls
    if acls is None:
        refused = _failed(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        return DeleteAclsResponse(filter_results=tuple(refused for _ in request.filters))
    return DeleteAclsResponse(
        filter_results=tuple([await _delete(acls, one) for one in request.filters])
    )


async def _delete(acls: AclWatch, asked: DeleteAclsFilter) -> DeleteAclsFilterResult:
    try:
        wanted = filter_of(asked)
    except BadAcl as reason:
        return _failed(ErrorCode.INVALID_REQUEST, str(reason))
    matching: list[DeleteAclsMatchingAcl] = []
    held = acls.held()
    candidates = held if wanted.exact is None else {wanted.exact} & held.keys()
    resources = [
        resource
        for resource in candidates
        if wanted.finds(resource) and any(map(wanted.finds_entry, held[resource] or ()))
    ]
    for resource in sorted(resources):
        matching += await _delete_of(acls, resource, wanted)
    return DeleteAclsFilterResult(error_code=ErrorCode.NONE, matching_acls=tuple(matching))


async def _delete_of(
    acls: AclWatch, resource: ResourcePattern, wanted: AclFilter
) -> list[DeleteAclsMatchingAcl]:
    """Remove what is found of one pattern, as ZooKeeper has it now."""
    error, message = ErrorCode.NONE, None
    try:
        before = await acls.change(
            resource,
            lambda present: frozenset(one for one in present if not wanted.finds_entry(one)),
        )
    except (MalformedNode, ZooKeeperFault) as fault:
        error, message = ErrorCode.UNKNOWN_SERVER_ERROR, f"not removed: {fault}"
        before = acls.held().get(resource) or frozenset()
    return [
        DeleteAclsMatchingAcl(
            error_code=error,
            error_message=message,
            resource_type=resource.type,
            resource_name=resource.name,
            pattern_type=resource.pattern,
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission_type=entry.permission,
        )
        for entry in sorted(before)
        if wanted.finds_entry(entry)
    ]


def _failed(error: ErrorCode, message: str) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=error, error_message=message, matching_acls=())
