"""The faults between us and a broker, as exceptions that a caller can tell apart.

Error codes inside an answer are data and never raised, with one exception that says so:
`RequestRefused`, for composed operations whose result has no place for a code.
"""

from wire.errors import ErrorCode


class NetworkFault(Exception):
    """Anything that kept a request from being answered."""


class BrokerUnreachable(NetworkFault):
    """No connection to a broker could be made, or no broker is known to send a request to."""


class AuthenticationFailed(BrokerUnreachable):
    """One side is not who it has to be: credentials refused, a certificate that is not trusted.

    Trying again soon is of no use, and a broker counts it.
    """


class TokenUnavailable(AuthenticationFailed):
    """No bearer token could be had; the broker has been told nothing."""


class ConnectionClosed(NetworkFault):
    """The connection ended before the answer came; whether the request was obeyed is unknown."""


class RequestTimedOut(ConnectionClosed):
    """The answer took longer than the safety limit; the connection is given up with it."""


class UnsupportedApi(NetworkFault):
    """The broker and we have no version of the API in common."""


class RequestRefused(NetworkFault):
    """A composed operation ended with an error code that is not worth another try."""

    def __init__(self, what: str, code: ErrorCode) -> None:
        super().__init__(f"{what}: {code.name}")
        self.code = code
