"""Who is active, as a test says."""

from typing import Any

from runtime.configuration.config import Configuration
from runtime.coordination.witness import ActiveSite


class Watch:
    """What clients ask of the witness; nobody else posts anything there."""

    def __init__(self, _: Configuration) -> None:
        self.active = ActiveSite(site="dc1", epoch=0)
        self.written_at = 1

    def ask_written_at(self) -> int:
        return self.written_at

    def current(self) -> ActiveSite:
        return self.active

    def wait_changed(self, _: ActiveSite, __: float) -> ActiveSite:
        return self.active

    def post(self, _: str, __: bytes) -> None: ...

    def posted(self, _: str) -> dict[str, bytes]:
        return {}

    def drop_later(self, _: list[Any]) -> None: ...

    def close(self) -> None: ...
