"""Seals: the ends of mirrored parts by promotions' journals in the witness. Pure.

Of a journal (its document is described in `failover/journal/journal.py`, which is not imported:
entry points know each other by what they write) only these keys are needed: epoch, site, source,
state, direction and partitions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from runtime.untrusted_json import LARGEST_INT32, read_json, text, whole_number
from wire.topic_partition import TopicPartition


class CannotTell(Exception):
    """The audit cannot decide; one line that names cluster, address, partition or journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """Where one partition stood when a promotion made its target the active site."""

    mirrored_source_end: int
    """The first source offset that was not mirrored."""
    target_end: int
    """Target offsets below it are the mirrored part; what follows, applications wrote."""


NOTHING_MIRRORED = Seal(mirrored_source_end=0, target_end=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """The promotion that ended a flow."""

    epoch: int
    seals: Mapping[TopicPartition, Seal]

    def seal(self, topic: str, partition: int) -> Seal:
        """Return the seal; a partition that is not listed was never mirrored."""
        return self.seals.get(TopicPartition(topic, partition), NOTHING_MIRRORED)


def promotion_of(
    journals: Iterable[bytes], *, source: str, target: str, is_both_ways: bool = False
) -> Promotion | None:
    """Return the promotion that sealed the flow from `source` to `target`, None if none has.

    A promotion that was rolled back, or has not sealed yet, does not count. Raises CannotTell
    for a document that is no journal, and when a later promotion made the source active again,
    unless `is_both_ways`: then the flow goes on, and what was mirrored is told apart from what
    applications wrote in between.
    """
    documents = sorted(
        (_document(data) for data in journals), key=lambda document: int(document["epoch"])
    )
    sealed: Promotion | None = None
    for document in documents:
        if document["state"] == "rolled-back" or document.get("direction") == "back":
            continue
        if (document["site"], document["source"]) == (target, source) and document["partitions"]:
            sealed = Promotion(epoch=int(document["epoch"]), seals=_seals(document))
        elif document["site"] == source and is_both_ways:
            sealed = None if document["partitions"] else sealed
        elif sealed is not None and document["site"] == source:
            raise CannotTell(
                f"flow {source}->{target}: promotion {document['epoch']} went back to {source} "
                f"after promotion {sealed.epoch}, and no flow of the file leads from {target} "
                f"to {source}: what that brought cannot be told from what {source} wrote itself"
            )
    return sealed


def _document(data: bytes) -> Mapping[str, Any]:
    try:
        document: Any = read_json(data)
        missing = {"epoch", "site", "source", "state", "partitions"} - document.keys()
        if not missing:
            whole_number(document["epoch"])
    except (ValueError, AttributeError) as error:
        raise CannotTell(f"witness: a promotion's journal is no JSON object: {error}") from error
    if missing:
        raise CannotTell(f"witness: a promotion's journal lacks {', '.join(sorted(missing))}")
    return MappingProxyType(document)


def _seals(document: Mapping[str, Any]) -> Mapping[TopicPartition, Seal]:
    try:
        return {
            TopicPartition(
                text(ends["topic"]), whole_number(ends["partition"], LARGEST_INT32)
            ): Seal(
                mirrored_source_end=whole_number(ends["mirrored_source_end"]),
                target_end=whole_number(ends["target_end"]),
            )
            for ends in document["partitions"]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise CannotTell(
            f"witness: the journal of promotion {document['epoch']} has a garbled seal: {error!r}"
        ) from error
