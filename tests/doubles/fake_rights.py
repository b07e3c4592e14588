"""An authorizer for the fake cluster: entries, of which each broker has its own copy."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from tests.doubles.fake_cluster import FakeBroker, FakeCluster
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from wire.messages.table import APIS
from wire.net.rights import Right

BROKER: Final = 4
ANY: Final = 1


class FakeRights:
    """What the cluster holds; the brokers in `deaf` still go by what there was before them."""

    def __init__(self, cluster: FakeCluster, *rights: Right) -> None:
        self.rights = set(rights)
        self.error = ErrorCode.NONE
        """What DescribeAcls is answered with."""
        self.deaf: dict[int, set[Right]] = {}
        self.settings: dict[str, str | None] = {}
        """What each broker tells of its own settings; of secret ones without their values."""
        self.log: list[tuple[str, frozenset[Right]]] = []
        """What was given and taken, a request each."""
        for broker in cluster.brokers.values():
            broker.scripts |= {
                DescribeAclsRequest.API_KEY: self._described_by(broker),
                CreateAclsRequest.API_KEY: self._create,
                DeleteAclsRequest.API_KEY: self._delete,
                DescribeConfigsRequest.API_KEY: self._describe_settings,
            }
            for key in broker.scripts:
                cluster.versions[key] = APIS[key].VERSIONS

    def _described_by(self, broker: FakeBroker) -> Any:
        async def describe(_: RequestHeader, asked: DescribeAclsRequest) -> DescribeAclsResponse:
            held = [
                right
                for right in sorted(self.deaf.get(broker.node_id, self.rights))
                if asked.resource_type_filter in (ANY, right.kind)
                and asked.operation in (ANY, right.operation)
                and asked.permission_type in (ANY, right.permission)
            ]
            return DescribeAclsResponse(
                error_code=self.error, resources=tuple(map(_resource, held))
            )

        return describe

    async def _create(self, _: RequestHeader, request: CreateAclsRequest) -> CreateAclsResponse:
        given = frozenset(
            Right(
                name=one.resource_name,
                principal=one.principal,
                host=one.host,
                operation=one.operation,
                permission=one.permission_type,
                pattern=one.resource_pattern_type,
                kind=one.resource_type,
            )
            for one in request.creations
        )
        self.rights |= given
        self.log.append(("give", given))
        return CreateAclsResponse(results=(AclCreationResult(error_code=0),) * len(given))

    async def _delete(self, _: RequestHeader, request: DeleteAclsRequest) -> DeleteAclsResponse:
        taken = frozenset(
            right
            for right in self.rights
            for one in request.filters
            if asdict(right)
            == {
                "name": one.resource_name_filter,
                "principal": one.principal_filter,
                "host": one.host_filter,
                "operation": one.operation,
                "permission": one.permission_type,
                "pattern": one.pattern_type_filter,
                "kind": one.resource_type_filter,
            }
        )
        self.rights -= taken
        self.log.append(("take", taken))
        result = DeleteAclsFilterResult(error_code=0, matching_acls=())
        return DeleteAclsResponse(filter_results=(result,) * len(request.filters))

    async def _describe_settings(
        self, _: RequestHeader, request: DescribeConfigsRequest
    ) -> DescribeConfigsResponse:
        """Tell no fence: Apache Kafka has none of its own."""
        [asked] = request.resources
        told = self.settings if asked.resource_name else {}
        configs = tuple(
            DescribeConfigsResourceResult(
                name=name,
                value=value,
                read_only=True,
                is_sensitive=value is None,
                synonyms=(),
            )
            for name, value in told.items()
        )
        result = DescribeConfigsResult(
            error_code=0,
            resource_type=BROKER,
            resource_name=asked.resource_name,
            configs=configs,
        )
        return DescribeConfigsResponse(results=(result,))


def everybodys(topics: Iterable[str], operation: int, permission: int) -> set[Right]:
    """The same entry for several topics."""
    return {
        Right(name=topic, principal="User:*", host="*", operation=operation, permission=permission)
        for topic in topics
    }


def _resource(right: Right) -> DescribeAclsResource:
    entry = AclDescription(
        principal=right.principal,
        host=right.host,
        operation=right.operation,
        permission_type=right.permission,
    )
    return DescribeAclsResource(
        resource_type=right.kind,
        resource_name=right.name,
        pattern_type=right.pattern,
        acls=(entry,),
    )
