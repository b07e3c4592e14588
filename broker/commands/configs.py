"""`broker configs`: describe, set, unset."""

from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

from broker.commands.key_values import key_values
from broker.commands.reaching import CommandFailed, reach, reason, require
from broker.commands.showing import Row, show_rows
from runtime.process.output import print_line
from runtime.program.command import Options
from runtime.program.program import BadInput, ExitStatus
from runtime.program.table import NOTHING
from wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)

KINDS: Final = MappingProxyType({"topic": 2, "broker": 4, "client-metrics": 16, "group": 32})
"""Kafka's ConfigResource.Type."""
ALL_BROKERS: Final = "default"
"""The word for what counts on every broker, which the protocol calls by no name."""
SOURCES: Final = MappingProxyType(
    {
        1: "topic",
        2: "broker",
        3: "all brokers",
        4: "file",
        5: "default",
        6: "logger",
        7: "client metrics",
        8: "group",
    }
)
"""Kafka's DescribeConfigsResponse.ConfigSource."""
DEFAULT: Final = 5
FILE: Final = 4
HIDDEN: Final = "(secret)"
SET: Final = 0
DELETE: Final = 1
TITLES: Final = {"key": "KEY", "value": "VALUE", "source": "SOURCE", "read_only": "READ-ONLY"}


async def describe(options: Options) -> int:
    """Show the settings of a topic or a broker that somebody has set, or all of them."""
    kind, name = named(options)
    request = DescribeConfigsRequest(
        resources=(
            DescribeConfigsResource(
                resource_type=KINDS[kind],
                resource_name=name,
                configuration_keys=tuple(options.key) or None,
            ),
        ),
        include_synonyms=True,
        include_documentation=True,
    )
    async with reach(options) as cluster:
        answer = await cluster.request(request, node=asked_broker(kind, name))
    [found] = answer.results
    require(f"{kind} {options.name}", found.error_code, found.error_message)
    rows = list(map(_row, found.configs))
    unknown = set(options.key) - {str(row["key"]) for row in rows}
    if unknown:
        raise CommandFailed(f"{kind} {options.name}: no setting {', '.join(sorted(unknown))}")
    if not options.all and not options.key:
        rows = [row for row in rows if row["is_set"]]
    empty = f"nothing is set for {kind} {options.name}; --all shows what counts there"
    rows.sort(key=lambda row: str(row["key"]))
    if not options.json:
        rows = [{**row, "value": HIDDEN} if row["secret"] else row for row in rows]
    show_rows(rows, TITLES, options, empty=empty, none=NOTHING)
    return ExitStatus.DONE


def _row(entry: DescribeConfigsResourceResult) -> Row:
    is_set = entry.config_source not in {DEFAULT, FILE}
    return {
        "key": entry.name,
        "value": None if entry.is_sensitive else entry.value,
        "secret": entry.is_sensitive,
        "source": SOURCES.get(entry.config_source, "unknown"),
        "is_set": is_set,
        "read_only": entry.read_only,
        "synonyms": [
            {
                "key": one.name,
                "value": one.value,
                "source": SOURCES.get(one.source, "unknown"),
            }
            for one in entry.synonyms
        ],
        "documentation": entry.documentation,
    }


async def set_configs(options: Options) -> int:
    """Set some settings; the others stay."""
    values = key_values("KEY=VALUE", options.settings)
    operations = [
        IncrementalAlterConfigsAlterableConfig(name=key, config_operation=SET, value=value)
        for key, value in values.items()
    ]
    return await _alter(options, operations, "set")


async def unset_configs(options: Options) -> int:
    """Take settings back, so that what is more general counts again."""
    operations = [
        IncrementalAlterConfigsAlterableConfig(name=key, config_operation=DELETE, value=None)
        for key in dict.fromkeys(options.keys)
    ]
    return await _alter(options, operations, "taken back")


async def _alter(
    options: Options, operations: Iterable[IncrementalAlterConfigsAlterableConfig], did: str
) -> int:
    kind, name = named(options)
    resource = IncrementalAlterConfigsResource(
        resource_type=KINDS[kind], resource_name=name, configs=tuple(operations)
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=options.dry_run)
    async with reach(options) as cluster:
        answer = await cluster.request(request, node=asked_broker(kind, name))
    [result] = answer.responses
    if result.error_code:
        told = reason(result.error_code, result.error_message)
        raise CommandFailed(f"{kind} {options.name}: {told}")
    keys = ", ".join(one.name for one in resource.configs)
    print_line(f"{kind} {options.name}: {keys} {'could be ' if options.dry_run else ''}{did}")
    return ExitStatus.DONE


def named(options: Options) -> tuple[str, str]:
    """Return kind and name as the protocol has them; raises BadInput for what is no broker."""
    kind, name = options.kind, options.name
    if kind != "broker":
        return kind, name
    if name == ALL_BROKERS:
        return kind, ""
    if not (name.isascii() and name.isdigit()):
        raise BadInput(f"broker {name}: give a broker's id, or {ALL_BROKERS} for all brokers")
    return kind, name


def asked_broker(kind: str, name: str) -> int | None:
    """Return the broker that has to be asked; None if any will do."""
    return int(name) if kind == "broker" and name else None
