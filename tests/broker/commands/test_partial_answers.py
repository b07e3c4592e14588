"""What commands say where brokers do a part of what was asked, or tell a part."""

import json
import math

import pytest

from broker.commands.acls import left_of, refused_of
from broker.commands.quotas import rows_of
from broker.commands.reaching import CommandFailed
from broker.commands.showing import show_json
from broker.commands.topics import own_settings, shown_settings
from wire.acls import Operation, PatternType, Permission, ResourceType
from wire.errors import ErrorCode
from wire.messages.create_acls import AclCreation, AclCreationResult
from wire.messages.delete_acls import DeleteAclsMatchingAcl
from wire.messages.describe_client_quotas import (
    DescribeClientQuotasEntity,
    DescribeClientQuotasEntry,
    DescribeClientQuotasValue,
)
from wire.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

ENTRIES = tuple(
    AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name="orders",
        resource_pattern_type=PatternType.LITERAL,
        principal="User:alice",
        host=host,
        operation=Operation.DESCRIBE_CONFIGS,
        permission_type=Permission.ALLOW,
    )
    for host in ("*", "10.0.0.1")
)


def test_each_entry_that_is_refused_is_named_with_its_reason() -> None:
    results = [
        AclCreationResult(error_code=ErrorCode.NONE),
        AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message="no such host"),
    ]
    assert refused_of(ENTRIES, results) == [
        "User:alice from 10.0.0.1: describe_configs: INVALID_REQUEST: no such host"
    ]
    with pytest.raises(CommandFailed, match="speaks of 1 of 2 entries"):
        refused_of(ENTRIES, results[:1])


def test_each_entry_that_is_left_is_named_with_its_reason() -> None:
    matching = [
        DeleteAclsMatchingAcl(
            error_code=code,
            resource_type=ResourceType.GROUP,
            resource_name="readers",
            principal="User:bob",
            host="*",
            operation=Operation.READ,
            permission_type=Permission.ALLOW,
        )
        for code in (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR)
    ]
    assert left_of(matching) == ["group readers: User:bob from *: read: UNKNOWN_SERVER_ERROR"]


def described(name: str, code: int, *keys: str) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=None,
        resource_type=2,
        resource_name=name,
        configs=tuple(
            DescribeConfigsResourceResult(
                name=key, value="1", read_only=False, config_source=1, is_sensitive=False
            )
            for key in keys
        ),
    )


def test_settings_that_are_not_told_are_unknown_and_not_none() -> None:
    answer = DescribeConfigsResponse(
        results=(
            described("orders", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            described("prices", ErrorCode.NONE, "retention.ms"),
            described("plain", ErrorCode.NONE),
        )
    )
    told = own_settings(["orders", "prices", "plain", "untold"], answer)
    assert {name: shown_settings(own) for name, own in told.items()} == {
        "orders": "?",
        "prices": "retention.ms=1",
        "plain": "none of its own",
        "untold": "?",
    }
    assert told["orders"] == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("value", [math.inf, math.nan, 1.5])
def test_quotas_are_json_also_where_brokers_have_no_number(
    value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = DescribeClientQuotasEntry(
        entity=(DescribeClientQuotasEntity(entity_type="user", entity_name=None),),
        values=(DescribeClientQuotasValue(key="producer_byte_rate", value=value),),
    )
    show_json(rows_of([entry]))

    def no_number(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    [row] = json.loads(capsys.readouterr().out, parse_constant=no_number)
    assert row["value"] == (1.5 if value == 1.5 else str(value))
