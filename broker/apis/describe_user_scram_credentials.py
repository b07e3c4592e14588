"""DescribeUserScramCredentials: who has which SCRAM credentials, and of how many iterations."""

from collections import Counter
from collections.abc import Mapping

from broker.apis.alter_user_scram_credentials import EMPTY_NAME
from broker.context import Call
from broker.security.scram import MECHANISMS, Garbled, parse_credential
from broker.zookeeper import tree
from broker.zookeeper.at_once import all_of
from runtime.coordination.zookeeper import ZooKeeperFault
from wire.errors import ErrorCode
from wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

Result = DescribeUserScramCredentialsResult


async def handle(
    request: DescribeUserScramCredentialsRequest, call: Call
) -> DescribeUserScramCredentialsResponse:
    """Answer from what ZooKeeper holds now."""
    store = call.node.store
    asked = Counter(user.name for user in request.users or ())
    try:
        names = list(asked)
        if not asked:
            encoded = await store.zookeeper.children(tree.USER_CONFIGS) or ()
            names = sorted(map(tree.decode_user, encoded))
        configs = await all_of([name for name in names if name], store.user_config)
    except ZooKeeperFault as fault:
        return DescribeUserScramCredentialsResponse(
            error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message=str(fault), results=()
        )
    results = [_result(name, configs.get(name, {}), asked[name]) for name in names]
    return DescribeUserScramCredentialsResponse(
        error_code=ErrorCode.NONE,
        # Of all users only those are told that have something to tell.
        results=tuple(
            one for one in results if asked or one.error_code != ErrorCode.RESOURCE_NOT_FOUND
        ),
    )


def _result(user: str, config: Mapping[str, str], asked: int) -> Result:
    if not user:
        return _wrong(user, ErrorCode.RESOURCE_NOT_FOUND, EMPTY_NAME)
    if asked > 1:
        twice = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        )
        return _wrong(user, ErrorCode.DUPLICATE_RESOURCE, twice)
    try:
        infos = tuple(
            CredentialInfo(
                mechanism=number, iterations=parse_credential(config[mechanism.value]).iterations
            )
            for number, mechanism in MECHANISMS.items()
            if mechanism.value in config
        )
    except Garbled as reason:
        return _wrong(user, ErrorCode.UNKNOWN_SERVER_ERROR, f"a credential {reason}")
    if not infos:
        nobody = f"Attempt to describe a user credential that does not exist: {user}"
        return _wrong(user, ErrorCode.RESOURCE_NOT_FOUND, nobody)
    return Result(user=user, error_code=ErrorCode.NONE, credential_infos=infos)


def _wrong(user: str, error: ErrorCode, message: str) -> Result:
    return Result(user=user, error_code=error, error_message=message)
