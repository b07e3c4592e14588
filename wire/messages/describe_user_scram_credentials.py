"""DescribeUserScramCredentials, key 50, v0: who has which credentials, without them (KIP-554)."""

from typing import ClassVar

from wire.schema import int8, int16, int32, message, nullable_string, string


@message
class CredentialInfo:
    """One credential of a user."""

    mechanism: int8
    iterations: int32


@message
class DescribeUserScramCredentialsResult:
    """One user's credentials."""

    user: string
    error_code: int16
    error_message: nullable_string = None
    credential_infos: tuple[CredentialInfo, ...] = ()


@message
class DescribeUserScramCredentialsResponse:
    """One result for each user."""

    API_KEY: ClassVar[int] = 50
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: nullable_string = None
    results: tuple[DescribeUserScramCredentialsResult, ...]


@message
class UserName:
    """A user asked about."""

    name: string


@message
class DescribeUserScramCredentialsRequest:
    """None, or no user, asks about all."""

    API_KEY: ClassVar[int] = 50
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0
    RESPONSE: ClassVar[type[DescribeUserScramCredentialsResponse]] = (
        DescribeUserScramCredentialsResponse
    )

    users: tuple[UserName, ...] | None = None
