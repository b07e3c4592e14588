"""The map records of a partition that begins at a place."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from mirror.map.map_log import RECORDS_A_WRITE, MapRecord
from mirror.start.start_position import Start, Stop
from mirror.state.partition import MirroredPartition
from offset_translation.map_records import (
    PieceStartKey,
    begun,
    piece_start,
    run_start,
    withdrawal,
)

ALONG: Final = 1_000
"""More that is to be taken back, or told of runs, is so before."""


def map_records_of(partition: MirroredPartition, start: Start) -> list[MapRecord]:
    """Return the records that go with the beginning, in one write."""
    records: list[MapRecord] = [withdrawal(key) for key in start.withdraw]
    name = (partition.topic, partition.index)
    if start.begun is not None:
        records.append(begun(*name, start.begun))
    records += [run_start(*name, place=place, target_start=target) for place, target in start.runs]
    if start.announce:
        records.append(
            piece_start(
                partition.topic,
                partition.index,
                source_start=start.source,
                place=start.place,
            )
        )
    if start.run is not None:
        records.append(
            run_start(partition.topic, partition.index, place=start.place, target_start=start.run)
        )
    return records


def needless_of(decisions: Iterable[Start | Stop]) -> list[MapRecord]:
    """Return the withdrawals to write beforehand, where they are too many to go along.

    A piece beyond the target's end says nothing, so each can go by itself; the rest may not.
    """
    keys = (
        key
        for decision in decisions
        if isinstance(decision, Start)
        for key in decision.withdraw
        if isinstance(key, PieceStartKey)
    )
    some: list[MapRecord] = [withdrawal(key) for key in islice(keys, RECORDS_A_WRITE)]
    return some if len(some) > ALONG else []
