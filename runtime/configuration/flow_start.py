"""From where a flow begins partitions that it has never mirrored: its key `start`. Pure."""

import re
from datetime import UTC, datetime
from typing import Final

from wire.values import frozen

EARLIEST_MS: Final = -2
LATEST_MS: Final = -1
"""The times by which ListOffsets is asked for both ends of a log."""
_WORDS: Final = {"earliest": EARLIEST_MS, "latest": LATEST_MS}
RFC_3339: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})"
)
"""A time of day with its distance from UTC: without that, it is another time on each machine."""
WANTED: Final = "`earliest`, `latest`, or a time such as 2026-01-31T08:00:00Z"


@frozen(kw_only=False)
class FlowStart:
    """The begin of a partition that was never mirrored, as ListOffsets is asked for it."""

    text: str
    """As the file has it."""
    at_ms: int
    """EARLIEST_MS, LATEST_MS, or a time: the first record of this time or a later one."""

    @property
    def leaves_records(self) -> bool:
        """Whether records that the source has may be left there."""
        return self.at_ms != EARLIEST_MS


EARLIEST: Final = FlowStart("earliest", EARLIEST_MS)


def parse_start(text: str) -> FlowStart:
    """Return what a text says; raises ValueError for what is neither a word nor a time."""
    if text in _WORDS:
        return FlowStart(text, _WORDS[text])
    if not RFC_3339.fullmatch(text):
        raise ValueError(f"{text!r} is not {WANTED}")
    try:
        time = datetime.fromisoformat(_with_microseconds(text.upper()))
        since = time - datetime.fromtimestamp(0, UTC)
    except (ValueError, OverflowError) as problem:
        raise ValueError(f"{text!r} is no time: {problem}") from None
    at_ms = (since.days * 86_400 + since.seconds) * 1_000 + since.microseconds // 1_000
    if at_ms < 0:
        raise ValueError(f"{text!r} lies before 1970, and no record of Kafka does")
    return FlowStart(text, at_ms)


def _with_microseconds(text: str) -> str:
    """Return a time with six digits of its second at most, which is what Python reads."""
    return re.sub(r"(\.\d{6})\d+", r"\1", text)
