"""DescribeUserScramCredentials, key 50, v0: who has which credentials, without them (KIP-554)."""

from dataclasses import dataclass
from typing import ClassVar

from wire.schema import int8, int16, int32, nullable_string, string


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialInfo:
    """One credential of a user."""

    mechanism: int8
    iterations: int32


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsResult:
    """One user's credentials."""

    user: string
    error_code: int16
    error_message: nullable_string = None
    credential_infos: tuple[CredentialInfo, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsResponse:
    """One result for each user."""

    API_KEY: ClassVar[int] = 50
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: nullable_string = None
    results: tuple[DescribeUserScramCredentialsResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserName:
    """A user asked about."""

    name: string


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsRequest:
    """None, or no user, asks about all."""

    API_KEY: ClassVar[int] = 50
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0
    RESPONSE: ClassVar[type[DescribeUserScramCredentialsResponse]] = (
        DescribeUserScramCredentialsResponse
    )

    users: tuple[UserName, ...] | None = None
