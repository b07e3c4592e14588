"""List what only one site has, by offset and key, and what was set aside: read off both logs.

    only there    the idle site's log behind what the active one has got from it: acknowledged
                  before a disaster and never mirrored, or written to a standby that was open; and
                  what came from the active site, and is gone there since
    foreign       what others had written to a standby before a disaster made it active; both sites
                  have it once the flow back has brought it
    set aside     saved in `<topic>.diverged` on both sites, and left out of the stream

Only the parts of the logs in question are read, and nothing is kept of them but digests of keys.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import trio

from failover.journal.journal import Journal
from failover.journal.journals import read_journals
from failover.journal.steps import PromotionState, StepName
from failover.sites.foreign_writers import find_foreign_writers
from failover.sites.map_follower import MapFollower
from failover.sites.mirrored_ends import find_mirrored_ends
from failover.sites.opening import flow_between, open_site
from failover.sites.parting import find_partings
from failover.sites.site import Site, SiteUnclear, brief
from failover.sites.unbelieved import find_unsure_ends
from failover.view.divergent_parts import Lack, Listed, Tally, UndecidedPart, What
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.topic_names import TopicNames, diverged_topic
from runtime.configuration.witness_session import open_witness
from runtime.coordination.map_registry import WitnessWriters
from runtime.diverged import KeyComparison, OwnRecords, is_restored, origin_of
from runtime.pair.opening import open_clusters, require_pair
from runtime.set_option import set_option
from wire.net import NetworkFault
from wire.record_batch import CorruptBatch, Record, iterate_records
from wire.topic_partition import TopicPartition
from wire.values import frozen

LOOK_TIMEOUT_S: Final = 5.0
MOST_NEWER: Final = 200_000
"""So many records of the active site's own are read for each partition to compare keys."""


Tell = Callable[[Listed | UndecidedPart | str], None]
"""Takes what is found, as it is found; a text says what could not be looked at."""


@frozen
class Comparison:
    """The active and the idle site of one pair of flows; topics go by the active one's names."""

    active: Site
    idle: Site
    flows: Sequence[FlowConfig]
    from_idle: MapFollower
    """What the active site has got from the idle one."""
    from_active: MapFollower
    journals: Sequence[Journal]
    tell: Tell
    tally: Tally

    async def list_all(self) -> None:
        """List everything; what cannot be read is told, and counts as not looked at."""
        await self._looking(self.active.name, self.from_idle.refresh)
        await self._list_set_aside()
        await self._list_foreign()
        await self._looking(self.idle.name, self._list_only_there)

    async def _looking(self, what: str, look: Callable[[], Awaitable[object]]) -> None:
        """Do a look; what keeps it from being done is told."""
        try:
            await look()
        except (NetworkFault, CorruptBatch) as fault:
            reason = brief(fault) if isinstance(fault, NetworkFault) else str(fault)
            self.tally.not_looked += 1
            self.tell(f"{what} was NOT looked at: {reason}")

    # --- what only the idle site has -----------------------------------------------------------

    async def _list_only_there(self) -> None:
        with trio.move_on_after(LOOK_TIMEOUT_S) as limit:
            await self.from_active.refresh()
            moving = sorted(
                {one for flow in self.flows for one in await self.idle.partitions(flow)}
            )
            ends = await self.idle.known_ends(moving)
            starts = await self.idle.starts([one for one in moving if one in ends])
        if limit.cancelled_caught:
            raise SiteUnclear(f"no answer within {LOOK_TIMEOUT_S:g} s")
        await self._tell_unbelieved(moving)
        await self._list_lost(ends)
        cut = await find_partings(self.idle, self.from_idle, ends)
        never: list[TopicPartition] = []
        for partition, end in sorted(ends.items()):
            if self.from_idle.bounded(partition) is None:
                never.append(partition)
            elif partition in cut:
                start = max(cut[partition].source, starts[partition])
                await self._list_part(partition, start, end, lack=Lack.CUT)
            else:
                await self._list_untaken(partition, starts[partition], end)
        await self._list_never_taken(never, starts, ends)

    async def _list_untaken(self, partition: TopicPartition, log_start: int, end: int) -> None:
        """List what lies behind the end of what the active site has got."""
        taken = max(self.from_idle.mirrored_end(partition) or 0, log_start)
        for start, stop in await self._merged(partition, log_start):
            if taken < stop:
                await self._list_part(partition, max(start, taken), stop, is_merged=True)
                taken = stop
        await self._list_part(partition, taken, end)

    async def _list_never_taken(
        self,
        never: Sequence[TopicPartition],
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """List what others wrote to logs of which the active site never got anything."""
        await self.from_active.refresh(never)
        held = {where for where, end in (await self.active.known_ends(never)).items() if end > 0}
        for partition, found in sorted((await find_mirrored_ends(self.from_active, never)).items()):
            for start, stop in await self._merged(partition, starts[partition]):
                await self._list_part(
                    partition, max(start, starts[partition]), stop, is_merged=True
                )
            behind = found.target_end
            may_be_copies = partition in held and not self.from_active.knows(partition)
            for start, stop in found.foreign:
                await self._list_part(partition, start, stop, may_be_copies=may_be_copies)
                behind = max(behind, stop)
            # A promotion that was taken back may have left its seal, and what lies behind it.
            await self._list_part(partition, max(behind, starts[partition]), ends[partition])
            if found.untold:
                self.tally.not_looked += 1
                self.tell(f"{self.idle.name} {partition} was NOT looked at: {found.untold}")

    async def _list_lost(self, ends: Mapping[TopicPartition, int]) -> None:
        """List what came from the active site, which has lost it since: here is the last copy.

        Raises NetworkFault, CorruptBatch.
        """
        known = [one for one in ends if self.from_active.knows(one)]
        known = [one for one in known if one in self.from_active.target_ends]
        # Where others have written among the mirror's batches, the map does not tell what is where.
        mixed = await find_foreign_writers(self.active, self.from_active, known)
        alone = [one for one in known if one not in mixed]
        for partition, parting in (
            await find_partings(self.active, self.from_active, alone)
        ).items():
            stop = min(ends[partition], self.from_active.writing_end(partition))
            await self._list_part(partition, parting.target, stop, lack=Lack.LOST)

    async def _tell_unbelieved(self, moving: Sequence[TopicPartition]) -> None:
        """Tell what of the maps is not believed: the rest may take copies for records of its own.

        Raises NetworkFault.
        """
        for follower in (self.from_active, self.from_idle):
            if follower.unbelieved is None:
                continue
            unsure = await find_unsure_ends(
                follower, {one: follower.mirrored_end(one) for one in moving}
            )
            self.tally.not_looked += len(unsure)
            self.tell(next(iter(unsure.values()), follower.unbelieved))

    async def _merged(self, partition: TopicPartition, log_start: int) -> list[tuple[int, int]]:
        """Return what others wrote, and the mirror goes on behind by decision.

        The mirror's batch lies behind each part, or nothing yet. Behind other gaps lie a
        MirrorMaker's batches, and those before are its repetitions. Of parts before the log's
        start, which retention took with the batches behind them, there is nothing to list.
        """
        if not self.from_active.knows(partition):
            return []
        merged: list[tuple[int, int]] = []
        for start, stop in self.from_active.maps[partition].runs.gaps():
            if stop <= log_start:
                continue
            reader = self.idle.read(partition, stop, stop + 1)
            end = self.from_active.target_ends.get(partition, 0)
            writers = [header.producer_id async for header, _ in reader] if stop < end else []
            if all(one in self.from_active.producer_ids for one in writers):
                merged.append((start, stop))
        return merged

    async def _list_part(
        self,
        partition: TopicPartition,
        start: int,
        stop: int,
        *,
        is_merged: bool = False,
        may_be_copies: bool = False,
        lack: Lack | None = None,
    ) -> None:
        """List a part of the idle site's log, without what the mirror has brought there.

        Of what the active site has lost it is what the mirror has brought that is listed.
        """
        if start >= stop:
            return
        keys, count, first, last = KeyComparison(), 0, stop, start
        mirrors, there = self.from_active.producer_ids, self.idle.here(partition)
        is_lost = lack is Lack.LOST
        left_out = () if is_lost else mirrors
        async for header, records in OwnRecords(self.idle.cluster, there, start, stop, left_out):
            if is_lost and header.producer_id not in mirrors:
                continue
            for record in records:
                if is_restored(record):
                    continue
                keys.take_diverged(record)
                self.tell(_listed(What.ONLY_THERE, self.idle.name, there, record))
                first, last, count = min(first, record.offset), record.offset, count + 1
        if not count:
            is_of_another_log = lack is not None
            if is_merged or may_be_copies or is_of_another_log:
                return
            if await self._ends_mirrored(partition, stop):
                return
            self.tally.unseen += 1
            first, last = start, stop - 1
        self.tally.pending += count
        await self._take_newer(partition, keys)
        self.tell(
            UndecidedPart(
                site=self.idle.name,
                active=self.active.name,
                partition=partition,
                there=there,
                start=first,
                stop=last + 1,
                records=count,
                keys=keys,
                is_merged=is_merged,
                lack=lack or await self._lack(partition),
                may_be_copies=may_be_copies,
                topic_set=self.from_idle.topic_set,
            )
        )

    async def _ends_mirrored(self, partition: TopicPartition, stop: int) -> bool:
        """Tell whether the mirror wrote the last batch before an offset, or a cleaner took that.

        Where it did, it has passed whatever lies before.
        """
        mirrors = self.from_active.producer_ids
        async for header, batch in self.idle.read(partition, stop - 1, stop):
            is_ours = header.producer_id in mirrors
            return is_ours or any(is_restored(one) for one in iterate_records(batch))
        return True

    async def _lack(self, partition: TopicPartition) -> Lack | None:
        """Return how the active site lacks a partition, None if it has it."""
        if partition in await self.active.known_ends([partition]):
            return None
        was_there = (
            self.from_active.knows(partition)
            or partition in self.from_active.target_ids
            or self.from_idle.knows(partition)
        )
        return Lack.GONE if was_there else Lack.NEVER_THERE

    async def _take_newer(self, partition: TopicPartition, keys: KeyComparison) -> None:
        """Take what the active site has written itself since, which ends up behind."""
        end = self.from_idle.target_ends.get(partition, 0)
        start = self.from_idle.writing_end(partition)
        if self.from_idle.bounded(partition) is None or start >= end:
            return
        seen, mirrors = 0, self.from_idle.producer_ids
        async for _, records in OwnRecords(self.active.cluster, partition, start, end, mirrors):
            for record in records:
                keys.take_newer(record)
            seen += len(records)
            if seen >= MOST_NEWER:
                keys.is_complete = False
                return

    # --- what the active site has got in other ways --------------------------------------------

    async def _list_foreign(self) -> None:
        """List what others had written to the site that is active now, as its promotion says."""
        done = [
            one
            for one in self.journals
            if one.site == self.active.name and one.state is PromotionState.DONE
        ]
        if not done:
            return
        parts: Any = done[-1].facts(StepName.SEAL).get("foreign", ())
        for part in parts:
            partition = self._by_active(done[-1], TopicPartition(part["topic"], part["partition"]))
            await self._looking(
                f"{self.active.name} {partition}",
                partial(self._list_foreign_part, partition, part["start"], part["stop"]),
            )

    def _by_active(self, journal: Journal, partition: TopicPartition) -> TopicPartition:
        """Return a partition of a promotion's journal, which calls it as its source does."""
        names = self.idle.names
        if names is None or journal.source != self.idle.name:
            return partition
        return TopicPartition(
            names.on_source(partition.topic) or partition.topic, partition.partition
        )

    async def _list_foreign_part(self, partition: TopicPartition, start: int, stop: int) -> None:
        start = max(start, (await self.active.starts([partition]))[partition])
        mirrors = self.from_idle.producer_ids
        async for _, records in OwnRecords(self.active.cluster, partition, start, stop, mirrors):
            for record in records:
                self.tally.foreign += 1
                self.tell(_listed(What.FOREIGN, self.active.name, partition, record))

    async def _list_set_aside(self) -> None:
        for partition, parts in sorted(self.from_idle.set_aside.items()):
            if parts:
                await self._looking(
                    f"{self.active.name} {diverged_topic(partition.topic)}",
                    partial(self._list_saved, partition),
                )

    async def _list_saved(self, partition: TopicPartition) -> None:
        where = TopicPartition(diverged_topic(partition.topic), partition.partition)
        end = (await self.active.known_ends([where])).get(where, 0)
        start = (await self.active.starts([where]))[where] if end else 0
        async for _, records in OwnRecords(self.active.cluster, where, start, end, ()):
            for record in records:
                origin = origin_of(record)
                if origin is None or origin.site != self.idle.name or is_restored(record):
                    continue
                self.tally.set_aside += 1
                self.tell(
                    Listed(
                        what=What.SET_ASIDE,
                        site=origin.site,
                        topic=self.idle.topic_here(partition.topic),
                        partition=partition.partition,
                        offset=origin.offset,
                        timestamp_ms=origin.timestamp_ms,
                        key=record.key,
                    )
                )


async def list_divergence(configuration: Configuration, tell: Tell) -> Tally:
    """Tell every record that only one site has, or that was set aside; return their numbers.

    Raises PairContradicted, PairUnknown, and what reading the witness raises.
    """
    coordination, tally = configuration.coordination, Tally()
    paths = coordination.paths
    async with open_witness(coordination) as zookeeper:
        async with open_clusters(configuration) as clusters:
            active = (await require_pair(configuration, zookeeper, clusters)).known_active.site
        journals = await read_journals(zookeeper, paths)
        for told in not_looked_at(configuration):
            tally.not_looked += 1
            tell(told)
        for idle, flows in _pairs(configuration, active):
            sites = configuration.clusters
            concerned = partial(_moves_any, flows, active)
            names = _names_on_idle(flows, active)
            async with open_site(sites[active]) as here, open_site(sites[idle]) as opened:
                there = replace(opened, names=names)
                comparison = Comparison(
                    active=here,
                    idle=there,
                    flows=flows,
                    from_idle=MapFollower(
                        here,
                        idle,
                        WitnessWriters(zookeeper, paths, idle, active),
                        concerned,
                        topic_set=configuration.topic_set,
                        names=None if names is None else names.home,
                    ),
                    from_active=MapFollower(
                        there,
                        active,
                        WitnessWriters(zookeeper, paths, active, idle),
                        concerned,
                        topic_set=configuration.topic_set,
                        may_be_gone=True,  # `_list_never_taken` says what may be a copy then
                    ),
                    journals=journals,
                    tell=tell,
                    tally=tally,
                )
                await comparison.list_all()
    return tally


def _moves_any(flows: Iterable[FlowConfig], active: str, topic: str) -> bool:
    """Tell whether any of these flows mirrors a topic, by the active site's name."""
    return any(
        flow.mirrors(topic) if flow.source == active else flow.brings(topic) for flow in flows
    )


def _names_on_idle(flows: Iterable[FlowConfig], active: str) -> TopicNames | None:
    """Return the idle site's names of the active one's topics; None where they are the same."""
    for flow in flows:
        if flow.renames:
            return flow.names if flow.source == active else flow.names.turned_round()
    return None


def not_looked_at(configuration: Configuration) -> Iterator[str]:
    """Yield a line for each flow whose topics are not compared here, and what does it instead."""
    for flow in configuration.flows:
        why = None
        if flow.is_prefixed:
            why = f"its topics have other names on {flow.target} (`names: prefixed`)"
        elif not flow.heeds_promotions:
            why = "both sites are written to (`active_active: true`)"
        if why is not None:
            of_set = set_option(flow.told_set)
            yield (
                f"{flow.name} was NOT looked at: {why}; `mirror status` names what others have"
                f" written to, and `spark-audit run{of_set}` compares both sites"
            )


def _pairs(configuration: Configuration, active: str) -> Iterator[tuple[str, Sequence[FlowConfig]]]:
    """Yield each site that the active one has a flow with, or is the target of, and the flows."""
    for idle in sorted(set(configuration.clusters) - {active}):
        ways = (
            flow_between(configuration, active, idle),
            flow_between(configuration, idle, active),
        )
        flows = [flow for flow in ways if flow is not None and flow.heeds_promotions]
        if flows:
            yield idle, flows


def _listed(what: What, site: str, partition: TopicPartition, record: Record) -> Listed:
    return Listed(
        what=what,
        site=site,
        topic=partition.topic,
        partition=partition.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
    )
