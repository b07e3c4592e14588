"""When remembered links are taken for what a log holds now. Pure.

Kafka appends to a log. Four things change what lies in it, and each has its own proof here:

    made again      the topic has another id
    retention       the log begins later: links before its start are not asked, one that lies across
                    it is read again
    truncation      the leader says where the epoch of the last link ended: before its end, and what
                    an election cut off was remembered (KIP-101, KIP-279: of one epoch there is one
                    leader, which never truncates, so all before is as it was, too)
    a cleaner       nothing tells what it rewrote: logs of compacted topics are read

Bits that rot are found by reading again, a part each night (`Chain.to_read_again`).
"""

from dataclasses import dataclass
from typing import Final

from runtime.set_option import set_option
from spark_audit.evidence.chain import Chain
from spark_audit.evidence.remembered import RememberedLog, RememberedSite
from spark_audit.snapshot.bounds import LogBounds
from wire.errors import ErrorCode, describe
from wire.net.partition_operations import EpochEnd

NO_EPOCH: Final = -1
TAKE_ANEW: Final = "take it anew with `spark-audit digest {site} --full{of_set}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedLinks:
    """Links that may be believed once the leader has said where their last epoch ended."""

    links: Chain

    @property
    def epoch(self) -> int:
        """Return the epoch to ask for."""
        epoch = self.links[-1].leader_epoch
        assert epoch is not None, "only whole links are remembered"
        return epoch


@dataclass(frozen=True, slots=True)
class Disbelief:
    """Why what is remembered of a partition is not believed, and the partition not compared."""

    why: str
    is_contradicted: bool = False
    """The log says otherwise, now and for ever; else nobody could tell tonight."""


def considered(
    site: str,
    log: RememberedLog | None,
    now: LogBounds,
    start: int,
    stop: int,
    told_set: str | None = None,
) -> AskedLinks | Disbelief | None:
    """Return the links between two offsets of a log to ask its leader about.

    None if the log is to be read, because nothing is remembered or nothing could be proven.
    """
    if log is None or now.is_compacted:
        return None
    of_set = set_option(told_set)
    anew = TAKE_ANEW.format(site=site, of_set=of_set)
    if log.topic_id != now.topic_id:
        return Disbelief(
            f"evidence of {site} (night {log.night}) is of topic id {log.topic_id}, and the topic "
            f"was made again with id {now.topic_id}; run `spark-audit digest {site}{of_set}`"
        )
    if now.topic_id.int == 0:
        return None
    if log.fault is not None:
        return Disbelief(f"evidence of {site} (night {log.night}): {log.fault}; {anew}")
    links = log.links.between(start, stop)
    if not links or links[-1].leader_epoch in {None, NO_EPOCH}:
        return None
    return AskedLinks(links=links)


def proven(
    site: str,
    asked: AskedLinks,
    answer: EpochEnd | ErrorCode | None,
    told_set: str | None = None,
) -> Chain | Disbelief:
    """Return the links if the leader's answer proves that the log still has them."""
    stop = asked.links[-1].stop
    if isinstance(answer, ErrorCode) or answer is None:
        why = "no answer" if answer is None else describe(answer)
        return Disbelief(f"{site} does not say where epoch {asked.epoch} ended: {why}")
    if answer.epoch == asked.epoch and answer.offset >= stop:
        return asked.links
    return Disbelief(
        f"evidence of {site} tells of offsets before {stop}, taken in leader epoch {asked.epoch}; "
        f"the leader's log has epoch {answer.epoch} and ended it at offset {answer.offset}: it was "
        f"truncated; {TAKE_ANEW.format(site=site, of_set=set_option(told_set))}",
        is_contradicted=True,
    )


def wrong_cluster(site: str, told: RememberedSite, cluster: str | None) -> str | None:
    """Return why evidence is none of a site: it is another cluster's."""
    if told.cluster is None or told.cluster == cluster:
        return None
    return (
        f"evidence of {site} is of cluster {told.cluster}, and {site} is cluster {cluster}: "
        "see audit.evidence"
    )
