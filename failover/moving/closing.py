"""The source of a promotion closed for writes, with all that the flow takes from it."""

from collections.abc import Collection
from functools import partial

from failover.journal.execute import StepFailed
from failover.journal.journal import Journal
from failover.journal.steps import PromotionKind
from failover.sites.fence import (
    Fence,
    FenceDoesNotHold,
    fence_of,
    find_locked_out,
    set_fence,
    wait_holds,
)
from failover.sites.shared_fence import SharedFence
from failover.sites.site import Site, client_let_through
from runtime.configuration.config import FlowConfig
from wire.topic_partition import TopicPartition
from wire.values import frozen


@frozen
class SourceClosing:
    """Closes what a flow takes from its source; every method may be repeated.

    All raise NetworkFault.
    """

    flow: FlowConfig
    source: Site
    shared: SharedFence
    sends_away: bool = False
    """Whether clients of closed topics are sent to their bootstrap servers."""

    async def close(
        self, journal: Journal, closed: Collection[TopicPartition] = ()
    ) -> tuple[TopicPartition, ...]:
        """Close all that the flow takes from the source, beside what is closed; return it.

        What is made there meanwhile is closed too, and so is what was closed and takes writes
        again: the new site may be open by then, and every second counts in which both are. Raises
        StepFailed.
        """
        found = await self.source.partitions(self.flow)
        while True:
            fence = self._fence(journal, found, is_moving=journal.kind is PromotionKind.PLANNED)
            fence = await self.shared.whole(self.source, fence)
            close = partial(set_fence, self.source.cluster, fence)
            if not closed or not set(found) <= set(closed):
                await close()
            try:
                await wait_holds(self.source.cluster, found, barred=fence.bars, close=close)
            except FenceDoesNotHold as fault:
                raise StepFailed(f"{self.source.name} cannot be fenced: {fault}") from fault
            closed, found = found, await self.source.partitions(self.flow)
            if set(found) <= set(closed):
                return found

    async def keep(self, journal: Journal, found: Collection[TopicPartition]) -> None:
        """Let rights to the whole cluster make topics again; all the rest stays closed."""
        fence = self._fence(journal, found, is_moving=False)
        await self.shared.set_part(self.source, fence)

    def _fence(
        self, journal: Journal, found: Collection[TopicPartition], *, is_moving: bool
    ) -> Fence:
        allowed = client_let_through(source=self.flow.source, target=self.flow.target)
        topics = {topic for topic, _ in (*journal.moving, *found)}
        return fence_of(
            self.flow,
            self.source.name,
            topics,
            allowed,
            is_moving=is_moving,
            sends_away=self.sends_away,
        )

    async def require_way_back(self, closed: Collection[TopicPartition]) -> None:
        """Raise StepFailed naming a partition where the flow back could not write."""
        shut = await find_locked_out(self.source.cluster, closed)
        if shut:
            topic, partition = shut[0]
            raise StepFailed(
                f"{self.source.name} would take nothing from the flow back either, as"
                f" {topic}-{partition} ({len(shut)} partitions): its super.users must name the"
                " mirror's user"
            )

    async def lift(self) -> None:
        """Open the source again."""
        await self.shared.set_part(self.source, Fence())
