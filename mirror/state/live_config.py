"""The configuration of a flow as it is now: its file may be read again while the flow runs."""

from runtime.configuration.config import FlowConfig


class LiveConfig:
    """One flow's configuration; a reload replaces it (see mirror.reload for what it may change)."""

    __slots__ = ("current",)

    def __init__(self, config: FlowConfig) -> None:
        self.current = config
        """To be asked for each time, never kept."""

    def replace(self, config: FlowConfig) -> None:
        """Go by another configuration of the same flow."""
        self.current = config
