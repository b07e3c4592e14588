"""How one served API is described."""

from collections.abc import Callable
from typing import Any, Final

from broker.context import Call, Handler
from broker.guards.guard import Guard
from wire.messages.api_versions import ApiVersion
from wire.schema import Request
from wire.values import frozen

MOST_ELEMENTS: Final = 100_000
"""Array elements of one request, which may be as many partitions, in whatever topics.

They are read in some microseconds each, and a frame of `socket.request.max.bytes` has room for 50
million of them: without a limit of its own one frame would stop a broker for minutes."""


@frozen
class ByHand:
    """A codec for what is usual; both return None for all else, which the schema codec does."""

    read: Callable[[memoryview, int, int], Request[Any] | None]
    """A frame, the version, and where the body begins."""
    write: Callable[[int, Any, int], bytes | None]
    """The correlation id, the answer, and the version, as a whole frame with its size."""


@frozen
class Api:
    """A request, the versions served, who answers it, and who stands before that.

    may_wait   the handler may take longer than a moment, so what is ready to go leaves before
    most_elements   of all arrays of one request together
    answers_at_length   an answer may be long although the request is not
    """

    name: str
    request: type[Request[Any]]
    handle: Handler
    guard: Guard
    versions: range
    may_wait: bool
    most_elements: int = MOST_ELEMENTS
    answers_at_length: bool = False
    by_hand: ByHand | None = None

    async def answer(self, request: Any, call: Call) -> Any:  # noqa: ANN401 - one per API
        """Return the handler's answer as far as the caller's rights go, as guards know them."""
        if call.rights.are_limited:
            return await self.guard.stand(request, call, self.handle)
        return await self.handle(request, call)

    @property
    def listed(self) -> ApiVersion:
        """Return the entry in ApiVersions."""
        return ApiVersion(
            api_key=self.request.API_KEY,
            min_version=self.versions.start,
            max_version=self.versions.stop - 1,
        )
