"""AlterUserScramCredentials: set and remove SCRAM credentials in ZooKeeper, where Kafka has them.

Any broker takes it: a write in ZooKeeper is checked against what was read.
"""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final

from broker.context import Call
from broker.security.scram import MECHANISMS, MOST_ITERATIONS, credential_of_salted
from runtime.coordination.zookeeper import ZooKeeperFault
from wire.errors import ErrorCode
from wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from wire.net.scram import LEAST_ITERATIONS

EMPTY_NAME: Final = "Username must not be empty"


class NoSuchCredential(Exception):
    """A credential that was to be removed is not there."""


async def handle(
    request: AlterUserScramCredentialsRequest, call: Call
) -> AlterUserScramCredentialsResponse:
    """Answer for each user by itself."""
    names = [one.name for one in request.deletions] + [one.name for one in request.upsertions]
    return AlterUserScramCredentialsResponse(
        results=tuple([await _alter(user, request, call) for user in dict.fromkeys(names)])
    )


async def _alter(
    user: str, request: AlterUserScramCredentialsRequest, call: Call
) -> AlterUserScramCredentialsResult:
    error, message = wrong_with(user, request)
    if error is ErrorCode.NONE:
        try:
            changed = await call.node.store.change_user_config(
                user, partial(changed_config, user, request)
            )
        except NoSuchCredential:
            error = ErrorCode.RESOURCE_NOT_FOUND
            message = "Attempt to delete a user credential that does not exist"
        except ZooKeeperFault as fault:
            error, message = ErrorCode.UNKNOWN_SERVER_ERROR, str(fault)
        else:
            call.node.scram_users.set_user(user, changed)  # the others hear of it by ZooKeeper
    return AlterUserScramCredentialsResult(user=user, error_code=error, error_message=message)


def wrong_with(
    user: str, request: AlterUserScramCredentialsRequest
) -> tuple[ErrorCode, str | None]:
    """Return why a user's changes cannot be, in Kafka's words."""
    deletions = [one for one in request.deletions if one.name == user]
    upsertions = [one for one in request.upsertions if one.name == user]
    mechanisms = [one.mechanism for one in deletions] + [one.mechanism for one in upsertions]
    if not user:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, EMPTY_NAME
    if not MECHANISMS.keys() >= set(mechanisms):
        return ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    if any(one.iterations > MOST_ITERATIONS for one in upsertions):
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"
    if any(one.iterations < LEAST_ITERATIONS for one in upsertions):
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"
    if max(Counter(mechanisms).values()) > 1:
        return (
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        )
    return ErrorCode.NONE, None


def changed_config(
    user: str, request: AlterUserScramCredentialsRequest, present: Mapping[str, str]
) -> Mapping[str, str]:
    """Return what is kept of the user after the changes. Raises NoSuchCredential."""
    changed = dict(present)
    for deletion in request.deletions:
        if (
            deletion.name == user
            and changed.pop(MECHANISMS[deletion.mechanism].value, None) is None
        ):
            raise NoSuchCredential(user)
    for wanted in request.upsertions:
        if wanted.name == user:
            mechanism = MECHANISMS[wanted.mechanism]
            salted, salt = bytes(wanted.salted_password), bytes(wanted.salt)
            credential = credential_of_salted(mechanism, salted, salt, wanted.iterations)
            changed[mechanism.value] = str(credential)
    return changed
