"""How one served API is described."""

from dataclasses import dataclass
from typing import Any, Final

from broker.context import Handler
from wire.messages.api_versions import ApiVersion
from wire.schema import Request

MOST_ELEMENTS: Final = 100_000
"""Array elements of one request, which may be as many partitions, in whatever topics.

They are read in some microseconds each, and a frame of `socket.request.max.bytes` has room for 50
million of them: without a limit of its own one frame would stop a broker for minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """A request, the versions served, and who answers it.

    may_wait   the handler may take longer than a moment, so what is ready to go leaves before
    most_elements   of all arrays of one request together
    answers_at_length   an answer may be long although the request is not
    """

    name: str
    request: type[Request[Any]]
    handle: Handler
    versions: range
    may_wait: bool
    most_elements: int = MOST_ELEMENTS
    answers_at_length: bool = False

    @property
    def listed(self) -> ApiVersion:
        """Return the entry in ApiVersions."""
        return ApiVersion(
            api_key=self.request.API_KEY,
            min_version=self.versions.start,
            max_version=self.versions.stop - 1,
        )
