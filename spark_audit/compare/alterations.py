"""Records that were altered: which belong together, and in which fields they differ. Pure."""

from collections.abc import Callable, Hashable, Sequence
from typing import Final, TypeAlias

from spark_audit.scan.alignment import Match, common_subsequence
from spark_audit.scan.entries import Entry

Likeness: TypeAlias = Callable[[Entry], Hashable]
"""What two records have in common of which one may be the other, altered."""


def _time_and_key(entry: Entry) -> Hashable:
    return entry.timestamp_ms, entry.key_digest or entry.key


def _content(entry: Entry) -> Hashable:
    return entry.key_digest or entry.key, entry.value_digest, entry.headers_digest


def _time_and_value(entry: Entry) -> Hashable:
    return entry.timestamp_ms, entry.value_digest, entry.is_tombstone


SAFE: Final[Sequence[Likeness]] = (_time_and_key,)
"""What tells an alteration whatever cleaners took of the record's neighbours."""
ALL: Final[Sequence[Likeness]] = (_time_and_key, _content, _time_and_value)
"""From the surest on: value or headers, the time, or the key was altered."""


def counterparts(
    source: Sequence[Entry], target: Sequence[Entry], likenesses: Sequence[Likeness]
) -> list[Match]:
    """Return the pairs, in order on both sides, that are alike in the first way, then between
    them in the second, and so on."""
    if not (likenesses and source and target):
        return []
    likeness, rest = likenesses[0], likenesses[1:]
    anchors = common_subsequence(list(map(likeness, source)), list(map(likeness, target)))
    pairs: list[Match] = []
    source_index = target_index = 0
    for anchor in [*anchors, None]:
        source_next = len(source) if anchor is None else anchor.source
        target_next = len(target) if anchor is None else anchor.target
        between = counterparts(
            source[source_index:source_next], target[target_index:target_next], rest
        )
        pairs += [Match(pair.source + source_index, pair.target + target_index) for pair in between]
        if anchor is not None:
            pairs.append(anchor)
            source_index, target_index = anchor.source + 1, anchor.target + 1
    return pairs


def altered_fields(source: Entry, target: Entry) -> Sequence[str]:
    """Return the names of the fields in which two records differ."""
    fields = {
        "timestamp": source.timestamp_ms != target.timestamp_ms,
        "key": (source.key, source.key_digest) != (target.key, target.key_digest),
        "value": (source.value_digest, source.is_tombstone)
        != (target.value_digest, target.is_tombstone),
        "headers": source.headers_digest != target.headers_digest,
    }
    return [name for name, is_other in fields.items() if is_other]


def all_but_one(entry: Entry) -> Sequence[Hashable]:
    """Return what a record has in common with each that differs from it in one field only."""
    fields = {
        "timestamp": entry.timestamp_ms,
        "key": entry.key_digest or entry.key,
        "value": (entry.value_digest, entry.is_tombstone),
        "headers": entry.headers_digest,
    }
    return [
        (left_out, *(value for name, value in fields.items() if name != left_out))
        for left_out in fields
    ]
