"""What a drill moves together: all topics of the file or one set of them, by names of its own."""

from dataclasses import dataclass
from typing import Final

TOPIC: Final = "drilled"
SECOND: Final = "second"
PATTERN_OF_SECOND: Final = f"{TOPIC}-{SECOND}.*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The topics and groups of one set; without a set those of the whole file."""

    topic_set: str | None = None
    topic: str = TOPIC
    leaves: str | None = None
    """What the topics of another set begin with, which would be this one's otherwise."""

    @property
    def compacted(self) -> str:
        """Return the topic that keeps one record of a key."""
        return f"{self.topic}-compacted"

    @property
    def group(self) -> str:
        """Return the group whose members follow the active site."""
        return f"{self.topic}-group"

    @property
    def plain_group(self) -> str:
        """Return the group whose members stay where they are started."""
        return f"{self.topic}-plain"

    @property
    def forwarded_group(self) -> str:
        """Return the group whose members come by endpoints."""
        return f"{self.topic}-forwarded"

    def made(self, number: int) -> str:
        """Return the topic that round `number` makes."""
        return f"{self.topic}-made-{number}"

    def has(self, topic: str) -> bool:
        """Tell whether a topic is one of these, or holds what was set aside of one."""
        is_of_another = self.leaves is not None and topic.startswith(self.leaves)
        return topic.startswith(self.topic) and not is_of_another

    def is_flow(self, name: str) -> bool:
        """Tell whether a flow, as `mirror status` calls it, is of these topics."""
        of_set, _, _ = name.rpartition(":")
        return of_set == (self.topic_set if self.topic_set not in {None, "default"} else "")


WHOLE: Final = Subject()
SETS: Final = (
    Subject(topic_set="default", leaves=f"{TOPIC}-{SECOND}"),
    Subject(topic_set=SECOND, topic=f"{TOPIC}-{SECOND}"),
)
"""The set of what no other set has, and one that is moved beside it."""
