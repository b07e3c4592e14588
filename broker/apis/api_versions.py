"""ApiVersions: what this broker serves, straight from the table of what it serves."""

from collections.abc import Callable, Iterable

from broker.apis.api import Api
from broker.context import Call, Handler
from wire.errors import ErrorCode
from wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse


def handler(served: Callable[[], Iterable[Api]]) -> Handler:
    """Return the handler for a table that will hold this very handler too."""

    async def handle(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:  # noqa: ARG001
        return ApiVersionsResponse(
            error_code=ErrorCode.NONE, api_keys=tuple(api.listed for api in served())
        )

    return handle
