"""Loops are cut here: a batch that a mirror brought to the source is not sent back. Pure.

    dc1 ── flow ──► dc2 ── flow back ──► dc1        without a cut a record would go round for ever

A mirror writes all its batches under one producer id, which is in its map before its first batch is
in a log. The ids of the mirrors that write into our source are in ``ReverseFlow.loop_ids``, which
`mirror.map.reverse_map` keeps. While both directions run, nothing behind a batch of a producer that
may be a mirror is routed before that is known (``ReverseFlow.known_part``).
"""

from collections.abc import Container

from wire.record_batch import BatchHeader


def is_brought(header: BatchHeader, loop_ids: Container[int]) -> bool:
    """Whether a mirror has brought the batch, so that it stays where it is.

    `mirror.forward.routing` asks so in place where batches go on as bytes.
    """
    return header.producer_id in loop_ids
