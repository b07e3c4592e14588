"""A promotion's seals: the map says where each mirrored log ends, and each goes on by itself."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from failover.journal.execute import Note, StepFailed, StepOutcome
from failover.journal.facts import Facts, SealFacts
from failover.journal.journal import Journal, PartitionEnds
from failover.journal.mirrored_away import mirrored_away
from failover.journal.steps import PromotionKind, StepName
from failover.moving.drain import SourceLogs, drained_logs, missing
from failover.moving.stray_positions import pull_back_stray
from failover.sites.map_follower import MapFollower
from failover.sites.mirrored_ends import (
    find_mirrored_ends,
    foreign_stops,
    seal_facts,
    with_earlier,
    without_mirrored_away,
)
from failover.sites.other_log import find_shorter_logs, require_none
from failover.sites.site import Site, brief
from failover.sites.unbelieved import find_unsure_seals, not_all_believed
from offset_translation.topic_identity import NO_ID
from runtime.configuration.config import FlowConfig
from wire.net import NetworkFault
from wire.topic_partition import TopicPartition
from wire.values import frozen


@frozen
class Seals:
    """Those of one promotion; setting and taking them back may be repeated at any time."""

    flow: FlowConfig
    source: Site
    target: Site
    follower: MapFollower
    journals: Callable[[], Awaitable[Sequence[Journal]]]
    """Reads all promotions' journals, oldest first; raises JournalUnreadable."""
    accepts_loss: bool
    """Whether a lost source is sealed although records of its map are not believed."""

    async def seal(self, journal: Journal, *, note: Note) -> StepOutcome:
        """Seal behind all that is mirrored; raises StepFailed, and what the follower raises."""
        await self.follower.refresh(journal.moving)
        if journal.kind is PromotionKind.SOURCE_LOST:
            return await self._seal_without_source(journal, note)
        logs = drained_logs(journal)
        require_none(await find_shorter_logs(self.source, self.follower, logs.ends))
        ends = [self._drained_ends(partition, logs) for partition in journal.moving]
        await self.follower.seal(
            {
                TopicPartition(one.topic, one.partition): (one.mirrored_source_end, one.target_end)
                for one in ends
            }
        )
        return StepOutcome(
            facts={"partitions": len(ends), **self._ids(journal)}, partitions=tuple(ends)
        )

    async def _seal_without_source(self, journal: Journal, note: Note) -> StepOutcome:
        """Seal behind the last batch of the mirror, whatever others have written to the target.

        With its seal the map accounts for what others have written, and nobody finds it any more:
        so the journal names it first.
        """
        partitions = journal.moving
        unsure = await find_unsure_seals(self.follower, partitions)
        if not self.accepts_loss:
            require_none(unsure)
        now = await self.target.topic_ids({topic for topic, _ in partitions})
        # That promotion's journal calls topics as the target does.
        there = {self.target.topic_here(topic): topic_id for topic, topic_id in now.items()}
        journals = await self.journals()
        by_target = mirrored_away(journals, self.target.name, self.source.name, there)
        away = {
            partition: by_target[here]
            for partition in partitions
            if (here := self.target.here(partition)) in by_target
        }
        sure = await find_mirrored_ends(self.follower, partitions)
        untold = not_all_believed(self.follower.topic_set)
        named = {
            partition: replace(end, untold=untold) if partition in unsure else end
            for partition, end in sure.items()
        }
        found = without_mirrored_away(named, away)
        facts = with_earlier(seal_facts(found), journal.facts(StepName.SEAL))
        if facts["foreign"] or facts["untold"]:
            await note(facts)
        await self.follower.seal(
            {partition: (end.source_end, end.target_end) for partition, end in found.items()},
            [(partition, *run) for partition, end in sorted(found.items()) for run in end.runs],
        )
        stray = await pull_back_stray(self.target, self.flow.groups, self.follower.target_ends)
        return StepOutcome(
            facts={"partitions": len(found), **facts, **stray, **self._ids(journal)},
            partitions=tuple(
                PartitionEnds(
                    topic=partition.topic,
                    partition=partition.partition,
                    mirrored_source_end=end.source_end,
                    target_end=end.target_end,
                    source_end=None,
                )
                for partition, end in sorted(found.items())
            ),
        )

    def _ids(self, journal: Journal) -> Facts:
        """Return which of the source's topics are sealed, for when it takes over again."""
        topics = sorted({topic for topic, _ in journal.moving})
        known = self.follower.topic_ids
        return SealFacts(source_ids=tuple(known.get(one, NO_ID) for one in topics)).encode()

    def _drained_ends(self, partition: TopicPartition, logs: SourceLogs) -> PartitionEnds:
        """Return where a partition stands behind the drain; raises StepFailed.

        What was never announced is a log without records: all of it is mirrored.
        """
        mirrored = self.follower.mirrored_end(partition)
        if missing(logs, {partition: mirrored}).get(partition, 0) > 0:
            raise StepFailed(
                f"{partition} is mirrored up to {mirrored or 0}, not to {logs.ends[partition]}"
            )
        if mirrored is None:
            mirrored = logs.ends[partition]
        return PartitionEnds(
            topic=partition.topic,
            partition=partition.partition,
            mirrored_source_end=mirrored,
            target_end=self.follower.writing_end(partition),
            source_end=logs.ends[partition],
        )

    async def unseal(self, journal: Journal) -> Facts:
        """Take the seals back; where the target does not answer, the mirror does it by itself.

        What it does when it goes on, and the source must not stay closed until then.
        """
        try:
            await self.follower.unseal(journal.moving, foreign_stops(journal.facts(StepName.SEAL)))
        except NetworkFault as fault:
            return {"left": brief(fault)}
        return {}
