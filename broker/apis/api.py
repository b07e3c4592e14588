"""How one served API is described."""

from dataclasses import dataclass
from typing import Any

from broker.context import Handler
from wire.messages.api_versions import ApiVersion
from wire.schema import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """A request, the versions served, and who answers it.

    may_wait   the handler may take longer than a moment, so what is ready to go leaves before
    """

    name: str
    request: type[Request[Any]]
    handle: Handler
    versions: range
    may_wait: bool

    @property
    def listed(self) -> ApiVersion:
        """Return the entry in ApiVersions."""
        return ApiVersion(
            api_key=self.request.API_KEY,
            min_version=self.versions.start,
            max_version=self.versions.stop - 1,
        )
