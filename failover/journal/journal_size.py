"""How long the journal of a promotion can become, known before anything is touched. Pure.

Nobody reads a document of more than MAX_BYTES (`runtime.untrusted_json`). A promotion whose journal
grew beyond that could neither be finished nor be taken back, and would leave a site closed. So it
is refused at its plan, and once more before and behind the fence, which may find more partitions.
"""

from collections.abc import Mapping
from typing import Final

from offset_translation.topic_identity import NO_ID
from runtime.coordination.long_document import compact
from runtime.untrusted_json import LARGEST, MAX_BYTES

OTHER_BYTES: Final = 8 * 1024 * 1024
"""Of all that does not grow with the partitions: groups and their positions, listed parts."""
SEAL_BYTES: Final = 1 + len(
    compact(
        {
            "topic": "",
            "partition": "",  # the number has as many digits as blanks here, or more
            "mirrored_source_end": LARGEST,
            "target_end": LARGEST,
            "source_end": LARGEST,
        }
    )
)
"""Of one partition in `partitions`, beside its topic's name and its number."""
DRAINED_BYTES: Final = len(compact({"": LARGEST}))
"""Of one partition in `starts`, and in `ends`, beside its number."""
APPENDED_BYTES: Final = 1 + len(
    compact({"topic": "", "partition": "", "start": LARGEST, "stop": LARGEST})
)
"""Of one partition that took records behind the fence, beside its topic's name and its number."""
LISTS_OF_TOPICS: Final = 8
"""preflight: topics, fence; fence: topics; drain: starts, ends; verify-fence and confirm: made;
open-target: was_fenced."""
TOPIC_BYTES: Final = len(compact({"": 2**31 - 1}))
"""Of one topic in such a list, beside its name."""
TOPIC_ID_BYTES: Final = len(compact([str(NO_ID)]))
"""Of one topic in the ids that the seal notes."""
MEGABYTE: Final = 1024 * 1024


def most_bytes(topics: Mapping[str, int]) -> int:
    """Return how long the JSON of a promotion can become that moves these numbers of partitions."""
    total = OTHER_BYTES
    for topic, count in topics.items():
        name, number = len(compact(topic)) - 2, len(str(count))
        total += LISTS_OF_TOPICS * (TOPIC_BYTES + name) + TOPIC_ID_BYTES
        total += count * (SEAL_BYTES + APPENDED_BYTES + 2 * DRAINED_BYTES)
        total += count * (2 * name + 4 * number)
    return total


def why_too_long(topics: Mapping[str, int]) -> str | None:
    """Return why a promotion of these numbers of partitions has no journal; None if it has."""
    size = most_bytes(topics)
    if size <= MAX_BYTES:
        return None
    return (
        f"{sum(topics.values())} partitions of {len(topics)} topics make a journal of up to"
        f" {-(-size // MEGABYTE)} MB, and {MAX_BYTES // MEGABYTE} MB can be read: share the topics"
        " among two files with a `coordination.path` each, by `topics.include` and"
        " `topics.exclude` of their flows"
    )
