"""SaslAuthenticate where nobody asks for it; otherwise `broker.security.gate` answers it."""

from broker.context import Call
from wire.errors import ErrorCode
from wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


async def handle(
    request: SaslAuthenticateRequest,  # noqa: ARG001
    call: Call,  # noqa: ARG001
) -> SaslAuthenticateResponse:
    """Answer ILLEGAL_SASL_STATE."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request without a SaslHandshake before it",
        auth_bytes=b"",
    )
