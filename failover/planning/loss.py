"""What a promotion gives up when its source is lost, by what was known of the source last. Pure.

    source  |----------- mirrored ----------|-- lost --| last known end   ... not known ...
                                            |          |
                                     level_ms          heard_ms

Nobody can ask a lost source. The mirror heard where its logs ended
(`runtime.coordination.known_ends`), and the target tells how far they are mirrored. The number of
records up to there is the least that is lost.

If the mirror looks on and hears nothing more, its last news count as the source's last words, and
the time ends UNSEEN_MS behind them; not those of a partition of which nothing was heard for that
long while others were still heard of. If the mirror ended or slept, before the source fell silent
or behind that, the source may have taken more since: then the number of records is not known, and
the time counts until now. What a source took that the mirror could not reach any more, nobody can
know.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from runtime.configuration.failover_section import LossBudget
from runtime.coordination.known_ends import UNSEEN_MS, KnownEnd, KnownEnds
from wire.topic_partition import TopicPartition
from wire.values import frozen

SHOWN: Final = 10
"""So many partitions are shown line by line, those that lose most first."""


@frozen
class PartitionLoss:
    """What one partition loses. None is not known, and not nothing."""

    partition: TopicPartition
    known_end: int | None
    """The source's end, as it was known last."""
    mirrored: int | None
    """The first source offset that the target does not have."""
    seconds: float | None
    """Records of at most so long a time are lost."""
    may_have_gone_on: bool
    """Whether the source may have taken records behind its known end."""

    @property
    def at_least(self) -> int | None:
        """The number of offsets that are lost up to the known end."""
        if self.known_end is None or self.mirrored is None:
            return None
        return max(0, self.known_end - self.mirrored)

    @property
    def records(self) -> int | None:
        """The number of offsets that are lost by the source's last word; None without one."""
        return None if self.may_have_gone_on else self.at_least

    @property
    def is_known(self) -> bool:
        """Whether both figures are known."""
        return self.records is not None and self.seconds is not None


@frozen
class Loss:
    """What all partitions lose; `age_s` is how old the news are, None where there are none.

    It is negative where the clock of the mirror is ahead of ours.
    """

    partitions: tuple[PartitionLoss, ...]
    age_s: float | None
    before_start: int = 0
    """Records at most that stay on the source by the flow's start, which no loss counts."""

    @property
    def at_least(self) -> int:
        """The records that are known to be lost."""
        return sum(one.at_least or 0 for one in self.partitions)

    @property
    def unknown(self) -> tuple[PartitionLoss, ...]:
        """The partitions of which it is not known how much they lose."""
        return tuple(one for one in self.partitions if not one.is_known)

    @property
    def seconds(self) -> float | None:
        """The longest time of which a partition loses records; None where it is not known."""
        known = [one.seconds for one in self.partitions if one.seconds is not None]
        return max(known, default=0.0) if len(known) == len(self.partitions) else None


def estimate(
    known: KnownEnds | None,
    mirrored: Mapping[TopicPartition, int],
    target_ends: Mapping[TopicPartition, int],
    now_ms: int,
) -> Loss:
    """Return what is lost of the partitions that the source was known to have or the target has.

    `mirrored` has the first source offset that is not on the target, where the map tells it.
    """
    ends = {} if known is None else known.ends
    is_followed = known is not None and known.is_followed(now_ms)
    # A partition that stands still is heard of less often: the source was there until this.
    last_ms = max((one.heard_ms for one in ends.values()), default=0)
    partitions = []
    for partition in sorted(ends.keys() | target_ends.keys()):
        # Of a log that is empty on the target, or not there at all, nothing is mirrored.
        nothing = 0 if target_ends.get(partition, 0) == 0 else None
        one = ends.get(partition)
        if one is not None and not (is_followed and one.heard_ms + UNSEEN_MS >= last_ms):
            one = replace(one, is_last_word=False)
        reached = mirrored.get(partition, nothing)
        partitions.append(
            PartitionLoss(
                partition=partition,
                known_end=None if one is None else one.end,
                mirrored=reached,
                seconds=None if one is None else _seconds(one, reached, now_ms),
                may_have_gone_on=one is None or not one.is_last_word,
            )
        )
    age_s = None if known is None else (now_ms - known.at_ms) / 1000
    return Loss(partitions=tuple(partitions), age_s=age_s)


def _seconds(one: KnownEnd, mirrored: int | None, now_ms: int) -> float | None:
    """Return of how long a time records are lost at most, None if it is not known."""
    if one.level_ms is None or mirrored is None:
        return None
    if one.level_ms >= one.heard_ms and mirrored < one.end:
        return None  # the mirror had brought all of it: the target has lost some since
    if now_ms < one.heard_ms:
        return None  # by a clock that is not the mirror's, nothing is known of the time since
    until_ms = min(now_ms, one.heard_ms + UNSEEN_MS) if one.is_last_word else now_ms
    return max(0, until_ms - one.level_ms) / 1000


def beyond_budget(loss: Loss, budget: LossBudget, source: str) -> str | None:
    """Return why a promotion may not lose this, None if it may."""
    if budget.records is None and budget.seconds is None:
        return None
    unknown = [
        one
        for one in loss.partitions
        if (one.records is None and budget.records is not None)
        or (one.seconds is None and budget.seconds is not None)
    ]
    if unknown:
        return (
            f"failover.loss_budget is set, and of {len(unknown)} of {len(loss.partitions)}"
            f" partitions it is not known how much of {source} would be lost:"
            f" {unknown[0].partition}, {_why_unknown(unknown[0], loss)}"
        )
    if budget.records is not None and loss.at_least > budget.records:
        return (
            f"{loss.at_least} records of {source} at least would be lost, and"
            f" failover.loss_budget.records"
            f" allows {budget.records} (most in {_most(loss)})"
        )
    seconds = loss.seconds or 0.0
    if budget.seconds is not None and seconds > budget.seconds:
        return (
            f"records of up to {seconds:.1f} s of {source} would be lost, and"
            f" failover.loss_budget.seconds allows {budget.seconds}"
        )
    return None


def loss_lines(loss: Loss, source: str) -> Iterator[str]:
    """Yield the lines that a plan has of the loss."""
    if loss.age_s is None:
        yield f"loss     not known: no mirror has written down where the logs of {source} ended"
        return
    unknown, losing = len(loss.unknown), sum(1 for one in loss.partitions if one.at_least)
    seconds = "time not known" if loss.seconds is None else f"up to {loss.seconds:.1f} s"
    yield (
        f"loss     at least {loss.at_least} records in {losing} partitions, {seconds}; by news of"
        f" {_age(loss.age_s)}"
    )
    if unknown:
        yield f"         of {unknown} of {len(loss.partitions)} partitions it is not known for sure"
    shown = [one for one in _worst_first(loss) if one.at_least or not one.is_known]
    for one in shown[:SHOWN]:
        yield f"         {_partition_line(one, loss)}"
    if len(shown) > SHOWN:
        yield f"         and {len(shown) - SHOWN} partitions more"


def _partition_line(one: PartitionLoss, loss: Loss) -> str:
    seconds = "" if one.seconds is None else f", up to {one.seconds:.1f} s"
    if one.at_least is None:
        return f"{one.partition}: not known, {_why_unknown(one, loss)}"
    where = f"mirrored up to {one.mirrored}, last known end {one.known_end}"
    why = "" if one.is_known else f"; {_why_unknown(one, loss)}"
    return f"{one.partition}: at least {one.at_least} records{seconds} ({where}){why}"


def _why_unknown(one: PartitionLoss, loss: Loss) -> str:
    """Return why it is not known how much a partition loses."""
    if loss.age_s is None:
        return "no mirror has written down where it ended"
    if one.known_end is None:
        return "the mirror has never heard where it ended"
    if one.mirrored is None:
        return "the map does not tell how far it is mirrored"
    if one.may_have_gone_on:
        return (
            f"the mirror's news end {_age(loss.age_s)}, and the source may have taken records that"
            " it did not see"
        )
    if one.seconds is None and loss.age_s < 0:
        return f"the mirror's news are {_age(loss.age_s)}"
    return "the mirror was never level with it, or the target has lost what it had"


def _age(age_s: float) -> str:
    if age_s < 0:
        return f"{-age_s:.1f} s ahead of this machine's clock"
    return f"{age_s:.1f} s ago"


def _worst_first(loss: Loss) -> list[PartitionLoss]:
    return sorted(
        loss.partitions, key=lambda one: (-(one.at_least or 0), one.is_known, one.partition)
    )


def _most(loss: Loss) -> str:
    worst = _worst_first(loss)[0]
    return f"{worst.partition}: {worst.at_least}"


def loss_summary(loss: Loss, most: int) -> Mapping[str, Any]:
    """Return the JSON form that a journal keeps: of those that lose most, at most so many."""
    worst = [one for one in _worst_first(loss) if one.at_least][:most]
    return {
        "records_at_least": loss.at_least,
        "records": None if loss.unknown else loss.at_least,
        "seconds": loss.seconds,
        **({"before_start": loss.before_start} if loss.before_start else {}),
        "partitions": {str(one.partition): one.at_least for one in worst},
    }


def loss_document(loss: Loss) -> Mapping[str, Any]:
    """Return the JSON form: every partition, null where something is not known."""
    return {
        "records_at_least": loss.at_least,
        "records": None if loss.unknown else loss.at_least,
        "seconds": loss.seconds,
        "news_age_seconds": loss.age_s,
        "before_start_at_most": loss.before_start,
        "partitions": [
            {
                "topic": one.partition.topic,
                "partition": one.partition.partition,
                "known_source_end": one.known_end,
                "mirrored_source_end": one.mirrored,
                "records_at_least": one.at_least,
                "records": one.records,
                "seconds": one.seconds,
            }
            for one in loss.partitions
        ],
    }
