"""CreateAcls: add access control entries in ZooKeeper. Any broker takes it."""

from collections import defaultdict
from functools import partial

from broker.apis.acl_requests import NO_AUTHORIZER, BadAcl, binding_of
from broker.authorizer.acl_index import Entries
from broker.authorizer.acl_watch import AclWatch
from broker.context import Call
from broker.zookeeper.at_once import all_of
from broker.zookeeper.tree import MalformedNode
from runtime.coordination.zookeeper import ZooKeeperFault
from wire.acls import AccessControlEntry, ResourcePattern
from wire.errors import ErrorCode
from wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


async def handle(request: CreateAclsRequest, call: Call) -> CreateAclsResponse:
    """Answer for each entry when it holds here; one that is there already is created, too."""
    acls = call.node.acls
    if acls is None:
        refused = _failed(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        return CreateAclsResponse(results=tuple(refused for _ in request.creations))
    results: list[AclCreationResult] = []
    wanted: dict[ResourcePattern, dict[int, AccessControlEntry]] = defaultdict(dict)
    for place, creation in enumerate(request.creations):
        try:
            binding = binding_of(creation)
        except BadAcl as reason:
            results.append(_failed(ErrorCode.INVALID_REQUEST, str(reason)))
        else:
            results.append(AclCreationResult(error_code=ErrorCode.NONE))
            wanted[binding.resource][place] = binding.entry
    failures = await all_of(
        wanted, lambda resource: _create(acls, resource, frozenset(wanted[resource].values()))
    )
    for resource, failure in failures.items():
        for place in wanted[resource]:
            results[place] = failure
    return CreateAclsResponse(results=tuple(results))


async def _create(
    acls: AclWatch, resource: ResourcePattern, entries: Entries
) -> AclCreationResult | None:
    """Write the entries of one pattern; return why they cannot be, None when they are."""
    try:
        await acls.change(resource, partial(frozenset.union, entries))
    except (MalformedNode, ZooKeeperFault) as fault:
        return _failed(ErrorCode.UNKNOWN_SERVER_ERROR, f"not stored: {fault}")
    return None


def _failed(error: ErrorCode, message: str) -> AclCreationResult:
    return AclCreationResult(error_code=error, error_message=message)
