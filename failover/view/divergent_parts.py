"""What `failover divergence` lists: records, and parts of logs that somebody has to decide about.

Pure: `failover.view.divergence` finds them.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Any, Final

from runtime.diverged import KeyComparison
from runtime.set_option import set_option
from wire.topic_partition import TopicPartition
from wire.values import frozen


class What(StrEnum):
    """Why a record is listed."""

    ONLY_THERE = "only there"
    FOREIGN = "foreign"
    SET_ASIDE = "set aside"


class Lack(Enum):
    """Why a partition that the idle site has is not on the active one."""

    NEVER_THERE = "somebody made it on the idle site alone"
    GONE = "it was mirrored to the idle site, and deleted on the active one since"
    LOST = "its records came from the active site, whose log has lost them since"
    CUT = "its log was cut behind what the active site got of it, and has grown again"


@frozen
class Listed:
    """One record: the site that has, or had, it at this offset."""

    what: What
    site: str
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None

    def document(self) -> dict[str, Any]:
        """Return it as a line of JSON has it; a key that is no UTF-8 has escapes."""
        return {
            "what": self.what.value,
            "site": self.site,
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "timestamp_ms": self.timestamp_ms,
            "key": None if self.key is None else _text(self.key),
        }

    def line(self) -> str:
        """Return it as a line of text."""
        key = "(no key)" if self.key is None else _text(self.key)
        where = f"{self.topic}-{self.partition}"
        time = _time(self.timestamp_ms)
        return f"{self.what:<10}  {self.site}  {where}  {self.offset}  {time}  {key}"


@frozen
class UndecidedPart:
    """A part of a log of the idle site that is to be decided about, and what merging would do."""

    site: str
    active: str
    partition: TopicPartition
    """By the active site's name, as commands have it."""
    there: TopicPartition
    """By the name on the idle site."""
    start: int
    stop: int
    records: int
    keys: KeyComparison
    is_merged: bool = False
    """It is decided about already, and waits for the flow back."""
    lack: Lack | None = None
    """Why the active site lacks the partition, or why its map does not speak of this log."""
    topic_set: str | None
    """Of the file's, which commands need."""
    may_be_copies: bool = False
    """Whether no map tells them from copies of the active site's: its topic may have been lost."""

    def line(self) -> str:
        """Return it as a line of text, with the command that leads on."""
        topic, index = self.partition
        of_set = set_option(self.topic_set)
        if self.lack in _OF_ANOTHER_LOG:
            return self._of_another_log(of_set)
        if self.is_merged:
            return (
                f"{self.there}: {self.site} alone has {self.records} records at offsets"
                f" {self.start} to {self.stop - 1}; they are merged: the flow back appends them"
                f" to {self.active} behind `failover promote {self.site}{of_set}`, {self.keys}"
            )
        if self.lack is Lack.GONE:
            return (
                f"{self.there}: {self.site} alone has {self.records} records at offsets"
                f" {self.start} to {self.stop - 1}, and it is gone from {self.active}:"
                f" `failover promote {self.site}{of_set}` makes them active; or copy what is"
                f" to stay, and delete the topic on {self.site}"
            )
        if self.may_be_copies:
            return (
                f"{self.there}: {self.site} has {self.records} records at offsets {self.start}"
                f" to {self.stop - 1} that may be copies of {self.active}'s: the map of them is"
                f" empty. `mirror rebuild-map --flow '{self.active}->{self.site}'` looks whether"
                " they are, and with --write makes the map anew"
            )
        if not self.records:
            return (
                f"{self.there}: {self.site} alone has offsets {self.start} to {self.stop - 1},"
                f" and no record there that a reader is shown: transactions were aborted."
                f" `mirror restart {self.active}-{self.site} {topic}:{index} --quarantine{of_set}`"
                " passes over them"
            )
        made = f"; {self.active} does not have it: the restart makes it there, empty"
        return (
            f"{self.there}: {self.site} alone has {self.records} records at offsets"
            f" {self.start} to {self.stop - 1}; `mirror restart {self.active}-{self.site}"
            f" {topic}:{index} --quarantine{of_set}` sets them aside, with --merge {self.keys}"
            f"{made if self.lack is Lack.NEVER_THERE else ''}"
        )

    def _of_another_log(self, of_set: str) -> str:
        """Return the line of a part that no restart sets aside: the map is of another log."""
        has = (
            f"{self.there}: {self.site} alone has {self.records} records at offsets"
            f" {self.start} to {self.stop - 1}"
        )
        if self.lack is Lack.LOST:
            return (
                f"{has}, which came from {self.active} and are gone there:"
                f" `failover promote {self.site} --source-lost --force{of_set}` makes them active;"
                f" `mirror restart {self.active}-{self.site} {self.partition.topic}"
                f" --from-earliest{of_set}` gives them up, and deletes this copy"
            )
        return (
            f"{has}, where it had others when {self.active} got them: its log was cut, or the"
            f" topic made again. Copy what is to stay, delete the topic on {self.site}, and with"
            f" every `mirror run` stopped `mirror refill {self.site} --write` has all brought from"
            f" {self.active}"
        )


_OF_ANOTHER_LOG: Final = frozenset({Lack.LOST, Lack.CUT})


@dataclass(slots=True)
class Tally:
    """What was found, and what could not be looked at."""

    pending: int = 0
    unseen: int = 0
    """Parts of logs to be decided about, without a record that a reader is shown."""
    set_aside: int = 0
    foreign: int = 0
    not_looked: int = 0


def _text(key: bytes) -> str:
    return key.decode(errors="backslashreplace")


def _time(timestamp_ms: int) -> str:
    """Return a record's time for people, or the number where no calendar has it."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
