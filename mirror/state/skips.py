"""Skips: source offsets that are, or may be, left out of the copy. Pure."""

from typing import NamedTuple

from runtime.configuration.flow_section import Policy


class Apart(NamedTuple):
    """Source offsets of a batch whose records go one by one."""

    begin: int
    end: int
    is_given_up: bool


class Skips:
    """The skips of one partition."""

    __slots__ = (
        "allowed_once",
        "apart",
        "count",
        "decided_end",
        "is_savable",
        "looped",
        "lost",
        "pass_over",
        "refused_from",
        "refused_through",
    )

    def __init__(self) -> None:
        self.lost = 0
        """Source offsets that were deleted before they were mirrored, where that has stopped it."""
        self.count = 0
        """Source offsets that a policy or a command has left out since the daemon began."""
        self.decided_end: int | None = None
        """The source offset behind the last ones that somebody has decided to leave out."""
        self.looped = 0
        """Batches left out since the daemon began because a mirror has brought them from there."""
        self.pass_over: int | None = None
        """Once positioned, go on at this source offset at the least."""
        self.refused_through: int | None = None
        """Behind this source offset lies what the target has refused and stopped us for."""
        self.refused_from: int | None = None
        """Where the batch of several records begins that was refused, if it can be taken apart."""
        self.apart: Apart | None = None
        """The batch whose records go one by one, because together they were refused."""
        self.allowed_once: Policy | None = None
        """The policy that a command has ordered, once."""
        self.is_savable = True
        """Whether records of the target's own, where those have stopped it, can be told apart."""

    def leave_out_looped(self, batches: int) -> None:
        """Count batches that came from the target, by their producer ids."""
        self.looped += batches

    def tell_apart(self, *, is_savable: bool) -> None:
        """Take note whether records of the target's own, which stop it, can be told apart."""
        self.is_savable = is_savable

    def lose(self, records: int) -> None:
        """Take note that so many records are gone from the source, which stops the partition."""
        self.lost = records

    def refuse(self, source_end: int | None, source_begin: int | None = None) -> None:
        """Note a stop: a skip goes on at this offset; None where nothing can be skipped.

        With ``source_begin`` the batch between them is taken apart first.
        """
        self.refused_through, self.refused_from = source_end, source_begin

    def take_apart(self, begin: int, end: int, *, is_given_up: bool) -> None:
        """Send the records between these source offsets one by one.

        ``is_given_up`` says that those which are refused again may be left out.
        """
        self.apart = Apart(begin, end, is_given_up)

    def gives_up(self, source_end: int | None) -> bool:
        """Whether the record that ends there is one of a batch that a skip was decided for."""
        apart = self.apart
        if apart is None or source_end is None or not apart.is_given_up:
            return False
        return apart.begin < source_end <= apart.end

    def allow_once(self, policy: Policy | None) -> None:
        """Let the next stop that this policy may end be ended by it, as a command says."""
        self.allowed_once = policy

    def pass_behind(self, source_end: int) -> None:
        """Go on behind records that cannot be mirrored; they are counted with the place."""
        self.pass_over = source_end
        self.allowed_once = None

    def forget_stop(self) -> None:
        """Forget what has stopped the partition: it is to go on."""
        self.lost = 0
        self.refused_through = None
        self.is_savable = True

    def settle(self, left_out: int, source: int) -> None:
        """Count the records that were left out by going on at ``source`` now."""
        if left_out:
            self.decided_end = source
        self.pass_over = None
        self.allowed_once = None
        self.lost = 0
        self.count += left_out
