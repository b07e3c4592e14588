"""SaslHandshake where nobody asks for it: without SASL, or too soon after the last one.

Where it has its place `broker.security.gate` answers it.
"""

from broker.context import Call
from wire.errors import ErrorCode
from wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


async def handle(request: SaslHandshakeRequest, call: Call) -> SaslHandshakeResponse:  # noqa: ARG001
    """Answer ILLEGAL_SASL_STATE."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=())
