"""`broker acls`: list, add, remove."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final

from broker.commands.reaching import CommandFailed, reach, reason, require
from broker.commands.showing import Row, show_rows, show_table
from runtime.process.output import print_line
from runtime.program.agreement import require_agreement
from runtime.program.command import Options
from runtime.program.program import BadInput, ExitStatus
from wire.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from wire.errors import ErrorCode
from wire.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest
from wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
)
from wire.messages.describe_acls import DescribeAclsRequest
from wire.net import Cluster

TITLES: Final = {
    "resource": "RESOURCE",
    "name": "NAME",
    "pattern": "PATTERN",
    "principal": "PRINCIPAL",
    "host": "HOST",
    "operation": "OPERATION",
    "permission": "PERMISSION",
}


async def list_acls(options: Options) -> int:
    """Show the entries that a filter finds."""
    wanted = filter_of(options)
    async with reach(options) as cluster:
        rows = await _found(cluster, wanted)
    show_rows(rows, TITLES, options, empty="there are no such entries")
    return ExitStatus.DONE


async def add(options: Options) -> int:
    """Add entries: each operation for each principal from each host."""
    creations = creations_of(options)
    async with reach(options) as cluster:
        answer = await cluster.request(CreateAclsRequest(creations=creations))
    refused = refused_of(creations, answer.results)
    done = len(creations) - len(refused)
    if done:
        print_line(f"{done} entries are there")
    if refused:
        raise CommandFailed(f"{len(refused)} entries refused: {'; '.join(refused)}")
    return ExitStatus.DONE


def refused_of(creations: Sequence[AclCreation], results: Sequence[AclCreationResult]) -> list[str]:
    """Return each entry that is not there, with the reason.

    Raises CommandFailed for an answer that does not speak of each.
    """
    if len(results) != len(creations):
        raise CommandFailed(f"the broker speaks of {len(results)} of {len(creations)} entries")
    return [
        f"{entry.principal} from {entry.host}: "
        f"{_name(Operation, entry.operation)}: {reason(one.error_code, one.error_message)}"
        for entry, one in zip(creations, results, strict=True)
        if one.error_code
    ]


def creations_of(options: Options) -> tuple[AclCreation, ...]:
    """Return the entries that were typed; raises BadInput where a part of them is missing."""
    resource, name = _resource(options)
    if resource is ResourceType.ANY or name is None:
        raise BadInput(
            "for what? Give one of --topic, --group, --transactional-id, --user, --cluster"
        )
    if not options.principal or not options.operation:
        raise BadInput("give --principal, as User:alice, and --operation, as read")
    pattern = PatternType.PREFIXED if options.prefixed else PatternType.LITERAL
    permission = Permission.DENY if options.deny else Permission.ALLOW
    return tuple(
        AclCreation(
            resource_type=resource,
            resource_name=name,
            resource_pattern_type=pattern,
            principal=_principal(principal),
            host=host,
            operation=Operation[_word(operation)],
            permission_type=permission,
        )
        for principal, host, operation in product(
            options.principal, options.host or [WILDCARD], options.operation
        )
    )


async def remove(options: Options) -> int:
    """Remove the entries that a filter finds, after they have been shown."""
    wanted = filter_of(options)
    if wanted == AclFilter():
        raise BadInput("which entries? Give at least one of the options that choose some")
    async with reach(options) as cluster:
        rows = await _found(cluster, wanted)
        if not rows:
            raise CommandFailed("there are no such entries; `broker acls list` shows all")
        show_table(rows, TITLES, empty="")
        require_agreement(f"Remove these {len(rows)} entries?", is_given=options.yes)
        answer = await cluster.request(DeleteAclsRequest(filters=(_deletion(wanted),)))
    [result] = answer.filter_results
    require("remove entries", result.error_code, result.error_message)
    left = left_of(result.matching_acls)
    done = len(result.matching_acls) - len(left)
    if done or not left:
        print_line(f"{done} entries removed")
    if left:
        raise CommandFailed(f"{len(left)} entries are left: {'; '.join(left)}")
    return ExitStatus.DONE


def left_of(matching: Iterable[DeleteAclsMatchingAcl]) -> list[str]:
    """Return each entry that was found and not removed, with the reason."""
    return [
        f"{_name(ResourceType, one.resource_type)} {one.resource_name}: {one.principal} from "
        f"{one.host}: {_name(Operation, one.operation)}: "
        f"{reason(one.error_code, one.error_message)}"
        for one in matching
        if one.error_code
    ]


def filter_of(options: Options) -> AclFilter:
    """Return what was typed as a filter; raises BadInput where it would be several."""
    resource, name = _resource(options)
    for option, values in (
        ("--principal", options.principal),
        ("--host", options.host),
        ("--operation", options.operation),
    ):
        if len(values) > 1:
            raise BadInput(f"{option}: give one of them, or none for all")
    if options.prefixed and name is None:
        raise BadInput("--prefixed: give the prefix with --topic, --group or their like")
    pattern = PatternType.ANY
    if name is not None:
        pattern = PatternType.PREFIXED if options.prefixed else PatternType.LITERAL
    if options.matching:
        pattern = PatternType.MATCH
    return AclFilter(
        type=resource,
        name=name,
        pattern=pattern,
        principal=_principal(options.principal[0]) if options.principal else None,
        host=options.host[0] if options.host else None,
        operation=Operation[_word(options.operation[0])] if options.operation else Operation.ANY,
        permission=Permission.DENY if options.deny else Permission.ANY,
    )


def _resource(options: Options) -> tuple[ResourceType, str | None]:
    named = {
        ResourceType.TOPIC: options.topic,
        ResourceType.GROUP: options.group,
        ResourceType.TRANSACTIONAL_ID: options.transactional_id,
        ResourceType.USER: options.user,
        ResourceType.CLUSTER: CLUSTER_NAME if options.cluster else None,
    }
    return next(
        ((kind, name) for kind, name in named.items() if name is not None),
        (ResourceType.ANY, None),
    )


def _principal(text: str) -> str:
    kind, colon, name = text.partition(":")
    if not colon or not kind or not name:
        raise BadInput(f"--principal {text}: not KIND:NAME as User:alice")
    return text


def _word(operation: str) -> str:
    return operation.upper().replace("-", "_")


async def _found(cluster: Cluster, wanted: AclFilter) -> list[Row]:
    request = DescribeAclsRequest(
        resource_type_filter=wanted.type,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    answer = await cluster.request(request)
    if answer.error_code == ErrorCode.SECURITY_DISABLED:
        raise CommandFailed(
            "the cluster keeps no entries: its brokers have no authorizer.class.name"
        )
    require("list entries", answer.error_code, answer.error_message)
    rows = [
        {
            "resource": _name(ResourceType, one.resource_type),
            "name": one.resource_name,
            "pattern": _name(PatternType, one.pattern_type),
            "principal": entry.principal,
            "host": entry.host,
            "operation": _name(Operation, entry.operation),
            "permission": _name(Permission, entry.permission_type),
        }
        for one in answer.resources
        for entry in one.acls
    ]
    return sorted(rows, key=lambda row: tuple(map(str, row.values())))


def _name(kind: type[ResourceType | PatternType | Operation | Permission], number: int) -> str:
    """Return Kafka's word; the number of what a newer broker has."""
    return next((one.name.lower() for one in kind if one == number), str(number))


def _deletion(wanted: AclFilter) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=wanted.type,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
