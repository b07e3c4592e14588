"""DescribeAcls: the access control entries that a filter finds, as this broker goes by them."""

from broker.apis.acl_requests import NO_AUTHORIZER, BadAcl, filter_of
from broker.context import Call
from broker.fairness import Turns
from wire.errors import ErrorCode
from wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


async def handle(request: DescribeAclsRequest, call: Call) -> DescribeAclsResponse:
    """Answer from what is known here; a node that cannot be read has no entries to tell."""
    acls = call.node.acls
    if acls is None:
        return _refused(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    try:
        wanted = filter_of(request)
    except BadAcl as reason:
        return _refused(ErrorCode.INVALID_REQUEST, str(reason))
    turns = Turns()
    resources: list[DescribeAclsResource] = []
    for resource, entries in sorted(acls.held().items(), key=lambda held: held[0]):
        await turns.pass_on()
        if not entries or not wanted.finds(resource):
            continue
        told = [entry for entry in sorted(entries) if wanted.finds_entry(entry)]
        if told:
            resources.append(
                DescribeAclsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    pattern_type=resource.pattern,
                    acls=tuple(
                        AclDescription(
                            principal=entry.principal,
                            host=entry.host,
                            operation=entry.operation,
                            permission_type=entry.permission,
                        )
                        for entry in told
                    ),
                )
            )
    return DescribeAclsResponse(error_code=ErrorCode.NONE, resources=tuple(resources))


def _refused(error: ErrorCode, message: str) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=error, error_message=message, resources=())
