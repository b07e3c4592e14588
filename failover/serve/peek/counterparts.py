"""The same records on the other site: found by the offset map, and looked for in the log there.

A map says where a copy lies; whether the mirror's batch lies there, the other log says itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from failover.serve.peek.look import PeekedRecord
from failover.sites.map_follower import MapFollower
from failover.sites.opening import flow_between, open_site
from failover.sites.site import Site, brief
from offset_translation.copies import NoCopy, copy_of, original_of
from offset_translation.renamed_keys import Renaming
from offset_translation.topic_identity import is_recreated
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.topic_names import TopicNames
from runtime.configuration.witness_session import open_witness
from runtime.coordination.map_registry import WitnessWriters
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperFault
from wire.net import NetworkFault
from wire.net.side_by_side import ask_each
from wire.record_batch import CorruptBatch
from wire.topic_partition import TopicPartition
from wire.values import frozen

ONE_BATCH_BYTES: Final = 1
"""A broker sends one whole batch at the least."""
LOOKS_AT_ONCE: Final = 4


@frozen
class Counterpart:
    """The same record on another site: its offset there, or why that is not known."""

    site: str
    offset: int | None = None
    why_not: str = ""
    topic: str | None = None
    """The topic's name there, where it has another."""


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
                asked = _Asked(of_set, site, name, place, ways)
                for offset, one in (await _on(asked, records)).items():
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
    out, back = both
    is_out = out is not None and out.mirrors(topic)
    return out if is_out else None, back if _brings(back, topic) else None


def _brings(back: FlowConfig | None, topic: str) -> bool:
    """Tell whether a flow mirrors something into a topic of this name."""
    source = None if back is None else back.names.on_source(topic)
    return back is not None and source is not None and back.mirrors(source)


def _cannot(ways: Sequence[FlowConfig | None], name: str) -> str | None:
    if any(flow is not None and flow.is_prefixed for flow in ways):
        return f"topics have other names on {name} (`names: prefixed`)"
    return None


@frozen(kw_only=False)
class _Asked:
    """A partition of one site, and the other site with the flows that lead there and back."""

    configuration: Configuration
    site: Site
    name: str
    place: TopicPartition
    ways: tuple[FlowConfig | None, FlowConfig | None]

    @property
    def names(self) -> TopicNames | None:
        """Return the other site's names of our topics; None where they are ours."""
        out, back = self.ways
        if out is not None:
            return out.names if out.renames else None
        return back.names.turned_round() if back is not None and back.renames else None


async def _on(asked: _Asked, records: Sequence[PeekedRecord]) -> Mapping[int, Counterpart]:
    """Return the counterparts on one other site; raises NetworkFault and ZooKeeperFault."""
    configuration, (out, back) = asked.configuration, asked.ways
    async with (
        open_witness(configuration.coordination) as zookeeper,
        open_site(configuration.clusters[asked.name]) as opened,
    ):
        other = replace(opened, names=asked.names)
        home = None if back is None or not back.renames else back.names.on_target
        maps = PartitionMaps(
            place=asked.place,
            site=asked.site,
            other=other,
            out=None if out is None else await _followed(asked, zookeeper, out, other),
            back=None
            if back is None
            else await _followed(asked, zookeeper, back, asked.site, home),
        )
        return await maps.find(records)


async def _followed(
    asked: _Asked,
    zookeeper: ZooKeeper,
    flow: FlowConfig,
    target: Site,
    names: Renaming | None = None,
) -> MapFollower:
    """Return the map of what a flow brings, as it is now."""
    configuration = asked.configuration
    writers = WitnessWriters(zookeeper, configuration.coordination.paths, flow.source, flow.target)
    topic_set = configuration.topic_set
    follower = MapFollower(target, flow.source, writers, topic_set=topic_set, names=names)
    await follower.refresh([asked.place])
    return follower


@frozen
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
        there = self.other.topic_here(self.place.topic)
        topic = None if there == self.place.topic else there
        return Counterpart(site=self.other.name, offset=answer, topic=topic)

    async def _writer_at(self, offset: int) -> int | None:
        """Return whose batch has this offset on the other site; None if none has it any more."""
        start = (await self.other.starts([self.place]))[self.place]
        if offset < start:
            return None
        reader = self.other.read(self.place, offset, offset + 1)
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
