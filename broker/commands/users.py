"""`broker users`: users of SCRAM, whose passwords the brokers keep salted."""

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from getpass import getpass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from broker.commands.reaching import CommandFailed, reach, reason, require
from broker.commands.showing import Row, show_rows
from runtime.process.output import print_line
from runtime.program.agreement import require_agreement
from runtime.program.command import Options
from runtime.program.program import BadInput, ExitStatus
from wire.errors import ErrorCode
from wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from wire.net import Cluster
from wire.net.scram import HASHES
from wire.net.security import Mechanism

MECHANISMS: Final[Mapping[str, int]] = MappingProxyType({"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2})
"""Kafka's ScramMechanism, by number."""
SALT_BYTES: Final = 32
MOST_PASSWORD_BYTES: Final = 4_096
TITLES: Final = {"user": "USER", "mechanism": "MECHANISM", "iterations": "ITERATIONS"}


async def list_users(options: Options) -> int:
    """Show users and the mechanisms by which they may log in, all or those that are named."""
    async with reach(options) as cluster:
        rows = await _credentials(cluster, options.users)
    show_rows(rows, TITLES, options, empty="there are no users of SCRAM")
    return ExitStatus.DONE


async def _credentials(cluster: Cluster, users: Sequence[str] | None) -> list[Row]:
    asked = None if not users else tuple(UserName(name=name) for name in dict.fromkeys(users))
    answer = await cluster.request_controller(DescribeUserScramCredentialsRequest(users=asked))
    require("list users", answer.error_code, answer.error_message)
    rows: list[Row] = []
    for one in sorted(answer.results, key=lambda result: result.user):
        if one.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            raise CommandFailed(f"user {one.user}: no password is kept for such a user")
        require(f"user {one.user}", one.error_code, one.error_message)
        rows += [
            {
                "user": one.user,
                "mechanism": _mechanism_name(info.mechanism),
                "iterations": info.iterations,
            }
            for info in one.credential_infos
        ]
    return rows


def _mechanism_name(number: int) -> str:
    return next((name for name, known in MECHANISMS.items() if known == number), str(number))


async def add(options: Options) -> int:
    """Let a user log in by a password, or give it another one."""
    password = read_password(options)
    salt = os.urandom(SALT_BYTES)
    name = HASHES[Mechanism(options.mechanism)]
    salted = hashlib.pbkdf2_hmac(name, password, salt, options.iterations)
    upsertion = ScramCredentialUpsertion(
        name=options.user,
        mechanism=MECHANISMS[options.mechanism],
        iterations=options.iterations,
        salt=salt,
        salted_password=salted,
    )
    async with reach(options) as cluster:
        await _alter(cluster, AlterUserScramCredentialsRequest(upsertions=(upsertion,)))
    print_line(f"user {options.user}: may log in by {options.mechanism}")
    return ExitStatus.DONE


def read_password(options: Options) -> bytes:
    """Return the password of a file, of standard input, or as it is typed twice on a terminal.

    A line's end behind it is not part of it. Raises BadInput.
    """
    file: Path | None = options.password_file
    if file is None:
        if not sys.stdin.isatty():
            raise BadInput(
                "standard input is no terminal on which to type the password: give it with "
                "--password-file FILE, or - for standard input"
            )
        typed = getpass("password: ")
        if getpass("once more: ") != typed:
            raise BadInput("the two passwords differ")
        password = typed.encode()
    elif str(file) == "-":
        password = sys.stdin.buffer.readline(MOST_PASSWORD_BYTES + 2)
    else:
        try:
            with file.open("rb") as stream:
                password = stream.read(MOST_PASSWORD_BYTES + 2)
        except OSError as fault:
            raise BadInput(f"--password-file {file}: {fault.strerror}") from fault
    password = password.removesuffix(b"\n").removesuffix(b"\r")
    if not password or len(password) > MOST_PASSWORD_BYTES or b"\n" in password:
        raise BadInput(f"a password has one line of 1 to {MOST_PASSWORD_BYTES} bytes")
    try:
        password.decode()
    except UnicodeDecodeError as wrong:
        raise BadInput("the password is not UTF-8") from wrong
    return password


async def remove(options: Options) -> int:
    """Keep no password of a user any longer, by one mechanism or by all."""
    async with reach(options) as cluster:
        rows = await _credentials(cluster, [options.user])
        kept = [str(row["mechanism"]) for row in rows]
        gone = kept if options.mechanism is None else [options.mechanism]
        if not set(gone) <= set(kept):
            raise CommandFailed(f"user {options.user} logs in by {', '.join(kept)} alone")
        require_agreement(
            f"Let user {options.user} log in by {' and '.join(gone)} no more?",
            is_given=options.yes,
        )
        deletions = tuple(
            ScramCredentialDeletion(name=options.user, mechanism=MECHANISMS[name]) for name in gone
        )
        await _alter(cluster, AlterUserScramCredentialsRequest(deletions=deletions))
    print_line(f"user {options.user}: {', '.join(gone)} removed")
    return ExitStatus.DONE


async def _alter(cluster: Cluster, request: AlterUserScramCredentialsRequest) -> None:
    answer = await cluster.request_controller(request)
    for one in answer.results:
        if one.error_code:
            raise CommandFailed(f"user {one.user}: {reason(one.error_code, one.error_message)}")
