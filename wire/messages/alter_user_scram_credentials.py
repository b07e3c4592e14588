"""AlterUserScramCredentials, key 51, v0: set and remove what brokers keep of passwords (KIP-554).

The salted password travels, not the password; a mechanism is 1 for SHA-256 and 2 for SHA-512.
"""

from typing import ClassVar

from wire.schema import bytes_, int8, int16, int32, message, nullable_string, string


@message
class AlterUserScramCredentialsResult:
    """The outcome for one user."""

    user: string
    error_code: int16
    error_message: nullable_string = None


@message
class AlterUserScramCredentialsResponse:
    """One result for each user."""

    API_KEY: ClassVar[int] = 51
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    throttle_time_ms: int32 = 0
    results: tuple[AlterUserScramCredentialsResult, ...]


@message
class ScramCredentialDeletion:
    """A credential to remove."""

    name: string
    mechanism: int8


@message
class ScramCredentialUpsertion:
    """A credential to set."""

    name: string
    mechanism: int8
    iterations: int32
    salt: bytes_
    salted_password: bytes_


@message
class AlterUserScramCredentialsRequest:
    """All changes of a user are made at once, or none."""

    API_KEY: ClassVar[int] = 51
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0
    RESPONSE: ClassVar[type[AlterUserScramCredentialsResponse]] = AlterUserScramCredentialsResponse

    deletions: tuple[ScramCredentialDeletion, ...] = ()
    upsertions: tuple[ScramCredentialUpsertion, ...] = ()
