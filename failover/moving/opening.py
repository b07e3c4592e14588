"""The target of a promotion opened for writes, or closed again as it was before."""

from collections.abc import Collection
from dataclasses import asdict

from failover.journal.execute import StepFailed
from failover.journal.facts import Facts
from failover.journal.journal import Journal
from failover.journal.steps import PromotionKind
from failover.sites.fence import Fence, fence_of, wait_lifted
from failover.sites.one_way_topics import find_one_way_topics
from failover.sites.opening import Ends, flow_between
from failover.sites.pair_evidence import PairEvidence
from failover.sites.shared_fence import SharedFence
from failover.sites.site import brief
from failover.sites.slipped import find_appended
from runtime.set_option import set_option
from wire.net import NetworkFault
from wire.topic_partition import TopicPartition
from wire.values import frozen


@frozen
class TargetOpening:
    """Opens the target of a flow; every method may be repeated."""

    ends: Ends
    shared: SharedFence
    evidence: PairEvidence
    is_insisted: bool = False
    """Whether topics are opened although the flow does not bring what the source has of them."""

    async def require_no_one_way(
        self, kind: PromotionKind, accepted: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Return the topics that would be opened without what the source has of them.

        Raises StepFailed for one that is not `accepted`, and where nobody can tell, unless somebody
        insists.
        """
        configuration, ends = self.shared.configuration, self.ends
        found = await find_one_way_topics(
            ends,
            flow_between(configuration, ends.target.name, ends.source.name),
            has=configuration.has,
            is_source_there=kind is PromotionKind.PLANNED,
        )
        if self.is_insisted:
            return found or ()
        flow, target, source = ends.flow.name, ends.target.name, ends.source.name
        of_set = set_option(configuration.topic_set)
        anyway = f"`failover promote {target} --force{of_set}` opens it all the same"
        if found is None:
            raise StepFailed(
                f"whether {target} is closed for topics that {flow} leaves out is not known;"
                f" {anyway}"
            )
        worse = [topic for topic in found if topic not in accepted]
        if worse:
            raise StepFailed(
                f"{target} is closed for {worse[0]} ({len(worse)} such topics), and the flow {flow}"
                f" does not bring what {source} has of it: add it to that flow's topics, and"
                f" restart `mirror run`; {anyway}"
            )
        return found

    async def open(self, journal: Journal) -> Facts:
        """Let the target take writes; both clusters carry first that a promotion is under way.

        What is opened is looked at last. A broker that has not heard of it within seconds is not
        waited for: the report says so. Raises StepFailed and NetworkFault.
        """
        target = self.ends.target
        left = await self.evidence.say_moving(journal.site, journal.epoch, self.required(journal))
        await self.require_no_one_way(journal.kind, journal.preflight.one_way)
        moved = {target.topic_here(topic) for topic, _ in journal.moving}
        fence = await self.shared.read_part(target)
        denied = 0
        if moved & set(fence.topics) or fence.patterns or fence.bars:
            await self.shared.set_part(target, Fence())
            denied = await wait_lifted(target.cluster, fence)
        return {
            "was_fenced": sorted(moved & set(fence.topics)),
            "evidence": {**left},
            "denied": denied,
        }

    def required(self, journal: Journal) -> frozenset[str]:
        """Return the sites that have to carry that a promotion is under way."""
        planned = journal.kind is PromotionKind.PLANNED
        return frozenset({self.ends.target.name, *([self.ends.source.name] if planned else [])})

    async def close(self, journal: Journal) -> Facts:
        """Close the target as it was before, and name what it has taken while it was open.

        One that does not answer now may stay open. The evidence says again that no promotion is
        under way; what cannot be written now, `failover serve` writes.
        """
        await self.evidence.say_active()
        before = journal.preflight.target_fence
        try:
            if before:
                away = self.shared.configuration.failover.sends_clients_away
                flow, target = self.ends.flow, self.ends.target
                fence = fence_of(flow, target.name, before, flow.client_id, sends_away=away)
                await self.shared.set_part(target, fence)
        except NetworkFault as fault:
            return {"left": brief(fault)}
        return {"fenced": len(before), **await self._taken(journal)}

    async def _taken(self, journal: Journal) -> Facts:
        """Return what lies behind the seals on the target, and the source does not have."""
        sealed = {
            TopicPartition(one.topic, one.partition): one.target_end for one in journal.partitions
        }
        if not sealed:
            return {}
        target = self.ends.target
        try:
            ends = await target.known_ends(sealed)
            taken, _ = await find_appended(target, [*ends], sealed)
        except NetworkFault as fault:
            return {"not_looked": brief(fault)}
        return {"taken": [asdict(one) for one in taken]} if taken else {}
