"""`broker quotas`: list, set, unset."""

import math
from collections.abc import Iterable, Sequence
from typing import Final

from broker.commands.key_values import key_values
from broker.commands.reaching import CommandFailed, reach, reason, require
from broker.commands.showing import Row, show_rows
from runtime.process.output import print_line
from runtime.program.command import Options
from runtime.program.program import BadInput, ExitStatus
from runtime.program.table import NOTHING
from wire.messages.alter_client_quotas import (
    AlterClientQuotasEntity,
    AlterClientQuotasEntry,
    AlterClientQuotasOperation,
    AlterClientQuotasRequest,
)
from wire.messages.describe_client_quotas import (
    DescribeClientQuotasComponent,
    DescribeClientQuotasEntity,
    DescribeClientQuotasEntry,
    DescribeClientQuotasRequest,
)

USER: Final = "user"
CLIENT: Final = "client-id"
IP: Final = "ip"
EXACT: Final = 0
DEFAULT: Final = 1
SHOWN_DEFAULT: Final = "(default)"
TITLES: Final = {
    USER: "USER",
    CLIENT: "CLIENT ID",
    IP: "ADDRESS",
    "quota": "QUOTA",
    "value": "VALUE",
}


async def list_quotas(options: Options) -> int:
    """Show quotas: all, or those of the user, client id and address that are named."""
    request = DescribeClientQuotasRequest(
        components=tuple(
            DescribeClientQuotasComponent(
                entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name
            )
            for kind, name in parts_of(options)
        ),
        strict=False,
    )
    async with reach(options) as cluster:
        answer = await cluster.request(request)
    require("list quotas", answer.error_code, answer.error_message)
    rows = rows_of(answer.entries or ())
    show_rows(rows, TITLES, options, empty="there are no quotas", none=NOTHING)
    return ExitStatus.DONE


def rows_of(entries: Iterable[DescribeClientQuotasEntry]) -> list[Row]:
    """Return a row for each quota; JSON has no number for one without an end."""
    rows: list[Row] = [
        {
            **_whom(entry.entity),
            "quota": one.key,
            "value": one.value if math.isfinite(one.value) else str(one.value),
        }
        for entry in entries
        for one in entry.values
    ]
    return sorted(rows, key=lambda row: tuple(map(str, row.values())))


def _whom(entity: Sequence[DescribeClientQuotasEntity]) -> Row:
    """Return the parts of who has a quota; None for a part that it does not have."""
    named = {
        one.entity_type: SHOWN_DEFAULT if one.entity_name is None else one.entity_name
        for one in entity
    }
    return {kind: named.get(kind) for kind in (USER, CLIENT, IP)}


def parts_of(options: Options) -> list[tuple[str, str | None]]:
    """Return the kinds and names that were typed; the name None is the default's."""
    typed = (
        (USER, options.user, options.user_default),
        (CLIENT, options.client_id, options.client_id_default),
        (IP, options.ip, options.ip_default),
    )
    return [
        (kind, None if is_default else name)
        for kind, name, is_default in typed
        if is_default or name is not None
    ]


async def set_quotas(options: Options) -> int:
    """Set quotas of whoever is named; others stay."""
    values = {
        key: _amount(key, value) for key, value in key_values("QUOTA", options.quotas).items()
    }
    operations = [
        AlterClientQuotasOperation(key=key, value=value, remove=False)
        for key, value in values.items()
    ]
    return await _alter(options, operations, "set")


def _amount(key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError as wrong:
        raise BadInput(f"{key}={text}: {text!r} is not a number") from wrong
    if not math.isfinite(value) or value <= 0:
        raise BadInput(f"{key}={text}: a quota is above 0; `broker quotas unset` takes it away")
    return value


async def unset_quotas(options: Options) -> int:
    """Take quotas away from whoever is named."""
    operations = [
        AlterClientQuotasOperation(key=key, value=0.0, remove=True)
        for key in dict.fromkeys(options.quotas)
    ]
    return await _alter(options, operations, "taken away")


async def _alter(
    options: Options, operations: Iterable[AlterClientQuotasOperation], did: str
) -> int:
    parts = parts_of(options)
    if not parts:
        raise BadInput("whose? Give --user, --client-id or --ip, or the default of one of them")
    entry = AlterClientQuotasEntry(
        entity=tuple(
            AlterClientQuotasEntity(entity_type=kind, entity_name=name) for kind, name in parts
        ),
        ops=tuple(operations),
    )
    request = AlterClientQuotasRequest(entries=(entry,), validate_only=options.dry_run)
    async with reach(options) as cluster:
        answer = await cluster.request_controller(request)
    whom = ", ".join(f"{kind} {SHOWN_DEFAULT if name is None else name}" for kind, name in parts)
    [result] = answer.entries
    if result.error_code:
        raise CommandFailed(f"{whom}: {reason(result.error_code, result.error_message)}")
    keys = ", ".join(one.key for one in entry.ops)
    print_line(f"{whom}: {keys} {'could be ' if options.dry_run else ''}{did}")
    return ExitStatus.DONE
