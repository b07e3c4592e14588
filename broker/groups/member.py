"""One member of a group, as its coordinator keeps it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""The assignors a member supports, in its order of preference, each with the member's metadata."""


@dataclass(slots=True, kw_only=True)
class Member:
    """A member that has joined at least once.

    `join_ticket` and `sync_ticket` are set while its JoinGroup or SyncGroup waits for an answer.
    `deadline_ms` is when the session ends unless something is heard; None while nothing counts.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    protocol_type: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int
    assignment: bytes = b""
    is_new: bool = False
    join_ticket: int | None = None
    sync_ticket: int | None = None
    deadline_ms: int | None = None

    @property
    def is_static(self) -> bool:
        """Whether it carries a group.instance.id and so keeps its place over a restart."""
        return self.instance_id is not None

    @property
    def has_joined(self) -> bool:
        """Whether its JoinGroup is waiting for the others."""
        return self.join_ticket is not None

    @property
    def is_excused(self) -> bool:
        """Whether silence is no sign of death: whoever waits for us cannot send heartbeats.

        Not so for a new member: it may have given up before it learned its name.
        """
        return not self.is_new and (self.join_ticket is not None or self.sync_ticket is not None)

    def metadata(self, protocol: str) -> bytes:
        """Return what the member sent for an assignor that all members support."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise AssertionError(f"member {self.member_id} does not support {protocol}")

    def vote(self, candidates: Collection[str]) -> str:
        """Return the assignor this member likes best among those that all support."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise AssertionError(f"member {self.member_id} supports none of {sorted(candidates)}")
