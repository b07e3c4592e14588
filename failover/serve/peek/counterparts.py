"""The same records on the other site: found by the offset map, and looked for in the log there.

A map says where a copy lies; whether the mirror's batch lies there, the other log says itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from failover.serve.peek.look import PeekedRecord
from failover.sites.map_follower import MapFollower
from failover.sites.opening import flow_between, open_site
from failover.sites.site import Site, brief
from offset_translation.copies import NoCopy, copy_of, original_of
from offset_translation.topic_identity import is_recreated
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.witness_session import open_witness
from runtime.coordination.map_registry import WitnessWriters
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperFault
from wire.net import NetworkFault
from wire.net.operations import read_partition
from wire.net.side_by_side import ask_each
from wire.record_batch import CorruptBatch
from wire.topic_partition import TopicPartition

ONE_BATCH_BYTES: Final = 1
"""A broker sends one whole batch at the least."""
LOOKS_AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterpart:
    """The same record on another site: its offset there, or why that is not known."""

    site: str
    offset: int | None = None
    why_not: str = ""


async def find_counterparts(
    configuration: Configuration,
    site: Site,
    place: TopicPartition,
    records: Sequence[PeekedRecord],
) -> Mapping[int, Sequence[Counterpart]]:
    """Return the counterparts of application records, by their offset, of each site with a flow.

    Where a map or a log cannot be read, each counterpart there says why. Raises nothing of theirs.
    """
    found: dict[int, list[Counterpart]] = {one.offset: [] for one in records}
    sets = configuration.sets
    of_set = configuration.of_set(sets.set_of(place.topic)) if sets.named else configuration
    for name in configuration.clusters:
        ways = _ways(of_set, site.name, name, place.topic)
        if name == site.name or not any(ways):
            continue
        why = _cannot(ways, name)
        try:
            if why is None and records:
                for offset, one in (await _on(of_set, site, name, place, records)).items():
                    found[offset].append(one)
        except (NetworkFault, ZooKeeperFault) as fault:
            why = brief(fault)
        if why is not None:
            for several in found.values():
                several.append(Counterpart(site=name, why_not=why))
    return found


def _ways(
    configuration: Configuration, here: str, there: str, topic: str
) -> tuple[FlowConfig | None, FlowConfig | None]:
    """Return the flows that mirror a topic from here to there, and back."""
    both = (
        flow_between(configuration, here, there),
        flow_between(configuration, there, here),
    )
    out, back = (one if one is not None and one.mirrors(topic) else None for one in both)
    return out, back


def _cannot(ways: Sequence[FlowConfig | None], name: str) -> str | None:
    for flow in ways:
        if flow is not None and not flow.keeps_names:
            by = "names: prefixed" if flow.is_prefixed else "rename"
            return f"topics have other names on {name} (`{by}`)"
    return None


async def _on(
    configuration: Configuration,
    site: Site,
    name: str,
    place: TopicPartition,
    records: Sequence[PeekedRecord],
) -> Mapping[int, Counterpart]:
    """Return the counterparts on one other site; raises NetworkFault and ZooKeeperFault."""
    async with (
        open_witness(configuration.coordination) as zookeeper,
        open_site(configuration.clusters[name]) as other,
    ):
        maps = PartitionMaps(
            place=place,
            site=site,
            other=other,
            out=await _followed(configuration, zookeeper, site.name, other, place),
            back=await _followed(configuration, zookeeper, name, site, place),
        )
        return await maps.find(records)


async def _followed(
    configuration: Configuration,
    zookeeper: ZooKeeper,
    source: str,
    target: Site,
    place: TopicPartition,
) -> MapFollower | None:
    """Return the map of what comes from a site, as it is now; None where no flow brings it."""
    flow = flow_between(configuration, source, target.name)
    if flow is None or not flow.mirrors(place.topic):
        return None
    writers = WitnessWriters(zookeeper, configuration.coordination.paths, source, target.name)
    follower = MapFollower(target, source, writers, topic_set=configuration.topic_set)
    await follower.refresh([place])
    return follower


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMaps:
    """One partition on two sites, and the maps of both ways; a way without a flow has None."""

    place: TopicPartition
    site: Site
    other: Site
    out: MapFollower | None
    back: MapFollower | None

    async def find(self, records: Sequence[PeekedRecord]) -> Mapping[int, Counterpart]:
        """Return the counterpart of each record by its offset; raises NetworkFault."""
        ids = {
            one.name: (await one.topic_ids([self.place.topic])).get(self.place.topic)
            for one in (self.site, self.other)
        }
        for follower in (self.out, self.back):
            if follower is None or not follower.knows(self.place):
                continue
            known, seen = follower.topic_ids.get(self.place.topic), ids[follower.source_name]
            if seen is not None and is_recreated(known, seen):
                why = f"the topic was made again on {follower.source_name} since it was mirrored"
                return {one.offset: self._unknown(why) for one in records}
        by_offset = {one.offset: one for one in records}
        return await ask_each(
            by_offset, lambda at: self._counterpart(by_offset[at]), at_once=LOOKS_AT_ONCE
        )

    async def _counterpart(self, record: PeekedRecord) -> Counterpart:
        """Return where a record lies on the other site; raises NetworkFault."""
        if record.state.is_marker:
            return self._unknown("the mirror carries no control record")
        if self.back is not None and record.producer_id in self.back.producer_ids:
            answer = _of_map(self.back, self.place, record.offset, is_arrival=True)
            wanted = None
        elif self.out is not None:
            answer = _of_map(self.out, self.place, record.offset, is_arrival=False)
            wanted = self.out.producer_ids
        else:
            return self._unknown(f"no flow leads from {self.site.name} to {self.other.name}")
        if isinstance(answer, NoCopy):
            return self._unknown(answer.value)
        writer = await self._writer_at(answer)
        if writer is None:
            why = f"it lay at offset {answer:,}, and is gone there: by retention or compaction"
            return self._unknown(why)
        if wanted is not None and writer not in wanted:
            why = f"at offset {answer:,}, where its copy would lie, is a record of another writer"
            return self._unknown(why)
        return Counterpart(site=self.other.name, offset=answer)

    async def _writer_at(self, offset: int) -> int | None:
        """Return whose batch has this offset on the other site; None if none has it any more."""
        start = (await self.other.starts([self.place]))[self.place]
        if offset < start:
            return None
        reader = read_partition(self.other.cluster, *self.place, offset, offset + 1)
        reader.fetch_bytes = ONE_BATCH_BYTES
        try:
            async for header, _ in reader:
                return header.producer_id
        except CorruptBatch as corrupt:
            raise NetworkFault(f"{self.other.name} {self.place}: {corrupt}") from corrupt
        return None

    def _unknown(self, why: str) -> Counterpart:
        return Counterpart(site=self.other.name, why_not=why)


def _of_map(
    follower: MapFollower, place: TopicPartition, offset: int, *, is_arrival: bool
) -> int | NoCopy:
    offset_map = follower.maps.get(place)
    if offset_map is None:
        return NoCopy.UNMIRRORED
    return original_of(offset_map, offset) if is_arrival else copy_of(offset_map, offset)
