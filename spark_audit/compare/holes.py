"""Holes that are findings by themselves, and targets that ended further on before. Pure."""

from collections.abc import Iterable, Iterator

from spark_audit.compare.judgements import Judgement
from spark_audit.compare.outcomes import Kind
from spark_audit.scan.committed import HoleReason
from spark_audit.scan.scan_rows import ScanRow
from spark_audit.snapshot.bounds import PartitionBounds
from spark_audit.snapshot.side import Side


def judge_holes(
    holes: Iterable[tuple[Side, ScanRow]], bounds: PartitionBounds
) -> Iterator[Judgement]:
    """Yield the holes that are findings: corrupt batches, gaps that no cleaner may have made."""
    for side, row in holes:
        log = bounds.source if side is Side.SOURCE else bounds.target
        is_corrupt = row.reason == HoleReason.CORRUPT.name
        if is_corrupt or (row.reason == HoleReason.GAP.name and not log.is_compacted):
            yield Judgement(
                Kind.CORRUPT if is_corrupt else Kind.HOLE,
                row.start_offset if side is Side.SOURCE else None,
                None if side is Side.SOURCE else row.start_offset,
                row.records,
                None,
                None,
                row.detail or ""
                if is_corrupt
                else f"no record at these offsets of the {side.value}",
            )


def judge_cut_log(bounds: PartitionBounds, *, is_behind: bool) -> Iterator[Judgement]:
    """Yield the finding of a target that ended further on before and is behind its source now.

    A target that was begun anew and has all of its source again has lost nothing.
    """
    if bounds.seen is not None and is_behind:
        yield Judgement(
            Kind.HOLE,
            None,
            bounds.mirrored_stop,
            bounds.seen.stop - bounds.mirrored_stop,
            None,
            None,
            bounds.seen.words,
        )
