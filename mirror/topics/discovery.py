"""Discovery: which source topics are mirrored, what the target lacks, who leads what now."""

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

import trio

from mirror.clusters.admin import (
    CreateTopic,
    GrowTopic,
    SetConfigs,
    TopicAction,
    delete_topic,
    reset_configs,
    topic_configs,
)
from mirror.clusters.links import Links
from mirror.clusters.log_ends import read_target_ends
from mirror.map.map_log import MapLog
from mirror.start.local_records import hear_of, holds_own
from mirror.state.flow_partitions import FlowPartitions
from mirror.state.in_flight import InFlightBudget
from mirror.state.interruptions import Interruptions
from mirror.state.leadership import NO_LEADER
from mirror.state.live_config import LiveConfig
from mirror.state.orders_in_force import OrdersInForce
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import STOPPED, PartitionState
from mirror.state.reverse_flow import ReverseFlow
from mirror.state.wakeups import FlowWakeups
from mirror.state.work_share import WorkShare
from mirror.topics.changes import Applied, apply_acceptable
from mirror.topics.choice import wanted_topics
from mirror.topics.first_look import look_first
from mirror.topics.given_up import told_given_up
from mirror.topics.gone_topics import GoneTopics
from mirror.topics.leaders import UNAUTHORISED, follow_leaders, is_positioning
from mirror.topics.lone_topics import LoneTopics
from mirror.topics.missing import NO_RIGHT, LeftBehind, MissingPartitions, doubt_maps
from mirror.topics.plan import plan_topics, topic_shape
from mirror.topics.quiet_targets import QuietTargets
from mirror.topics.recreated import RecreatedTopics
from mirror.topics.refused_settings import RefusedSetting, RefusedSettings
from mirror.topics.renamed_copies import RenamedCopies
from mirror.topics.setting_changes import OwnChanges
from mirror.topics.setting_removals import TakenBack
from mirror.topics.sight import TopicSight, exists, is_hidden, lacks
from offset_translation.topic_identity import NO_ID
from runtime.process.clock import now_ms
from runtime.process.fault_note import FaultNote
from runtime.process.unforeseen import described
from runtime.set_option import set_option
from wire.net.errors import AuthenticationFailed, NetworkFault
from wire.net.metadata import ClusterView, TopicView
from wire.net.topic_creation import TopicRefused
from wire.topic_partition import TopicPartition
from wire.values import frozen

_LOG = logging.getLogger(__name__)

LEAST_PAUSE_S: Final = 0.1
SILENT_MS: Final = 1_000
HAS_OWN: Final = "it holds records of its own, and the source is not asked for those"
CAME_FROM: Final = (
    "the source has records of it that came from {former}, and the new copy would lack them: give"
    " it that name back in the file"
)
MADE_AGAIN: Final = "the target topic was made again"
BEGINS_ANEW: Final = "it is mirrored anew from the earliest record"
NO_RIGHT_ON_TARGET: Final = "target: no right to see the topic"
CONFIG_INTERVAL_MS: Final = 30_000


def may_have_own(topic_set: str | None) -> str:
    """Return why a copy is not deleted of which the other direction's map may speak."""
    return (
        "records of the other direction's map speak of it, and are not believed, so it may hold"
        " records of its own; see"
        f" `failover recover --believe-maps{set_option(topic_set)}`"
    )


class TopicsSeen(NamedTuple):
    """What the last look found."""

    wanted: dict[str, TopicView]
    hidden: Collection[str]
    """Topics of the source that were mirrored, and that we may not see."""
    target: ClusterView | None


@frozen
class DiscoveryParts:
    """The parts of a flow's state that discovery uses."""

    config: LiveConfig
    partitions: FlowPartitions
    share: WorkShare
    orders: OrdersInForce
    reverse: ReverseFlow
    budget: InFlightBudget
    interruptions: Interruptions
    wakeups: FlowWakeups


class Discovery:
    """Keeps the flow's partitions in step with both clusters."""

    def __init__(self, parts: DiscoveryParts, links: Links, map_log: MapLog) -> None:
        config = parts.config.current
        self._parts = parts
        self._config = parts.config
        self._interruptions = parts.interruptions
        self._links = links
        self._map_log = map_log
        self._configs_read_ms = 0
        self._name = config.name
        self._names = config.names
        self._complaints: dict[str, TopicRefused] = {}
        self._created: set[str] = set()
        self._sight = TopicSight(
            parts.config, parts.partitions, orders=parts.orders, links=links, map_log=map_log
        )
        self._missing = MissingPartitions(parts.partitions, parts.interruptions)
        self._left_behind = LeftBehind(parts.config, parts.share)
        self.refused = RefusedSettings()
        """Settings of topics that are mirrored without them."""
        self._taken_back = TakenBack()
        self._own_changes = OwnChanges(config.source, config.target)
        self._recreated = RecreatedTopics(map_log, config.names, parts.interruptions)
        self._renamed = RenamedCopies(config.names, parts.interruptions)
        self._lone = LoneTopics(parts.config, parts.orders, parts.reverse, links, map_log)
        self._gone = GoneTopics(
            parts.config,
            partitions=parts.partitions,
            share=parts.share,
            orders=parts.orders,
            links=links,
            map_log=map_log,
        )
        self._quiet_targets = QuietTargets(parts.interruptions, links)
        self._seen = TopicsSeen({}, (), None)
        self.has_looked = False
        """Whether all topics that are mirrored are known."""
        self.fault = FaultNote(f"{config.name}: discovery")
        """The faults that keep discovery from working at present."""

    async def run(self) -> None:
        """Look again every interval, and sooner when somebody met a moved leader."""
        while True:
            try:
                await self.discover()
            except NetworkFault as fault:
                self._quiet_targets.doubt()
                self.fault.note(str(fault), is_refusal=isinstance(fault, AuthenticationFailed))
            except Exception as fault:  # noqa: BLE001 - what is unforeseen has no type
                self.fault.note(f"discovery failed: {described(fault)}")
                _LOG.exception("%s: discovery failed and looks again", self._name)
            else:
                self.fault.clear()
            await trio.sleep(LEAST_PAUSE_S)
            await self._parts.wakeups.refresh.wait(
                self._config.current.discovery_interval_ms / 1000
            )

    async def discover(self) -> None:
        """Compare once; raises NetworkFault."""
        leads = self._parts.share.leads
        if leads:
            await self._begin_anew()
        source = await self._links.source_admin.metadata(refresh=True)
        hidden = await self._sight.hidden_on_source(source)
        settled = await self._lone.settle(source, hidden) if leads else ()
        wanted = wanted_topics(self._config.current, source)
        self._missing.stop_missing(source, hidden, now_ms())
        if leads:
            current, reverse = self._config.current, self._parts.reverse
            await look_first(current, wanted.values(), reverse, self._map_log, now_ms())
            target = await self._shape_target(wanted)
            await self._gone.delete_due(
                source.topics.keys() | hidden, target, now_ms(), self._renamed
            )
            await self._recreated.remember(wanted.values(), self._created)
            self._created.clear()
        else:
            target = await self._sight.target(wanted)
            names = map(self._names.on_target, wanted)
            self._doubt_maps({name for name in names if lacks(target, name)})
            await self._map_log.catch_up()
            self._renamed.look(target, self._map_log.state.target_ids)
            self._gone.hear_of_deleted(source.topics.keys() | hidden, target, now_ms())
        self._seen = TopicsSeen(wanted, hidden, target)
        shown = (
            TopicPartition(topic.name, index)
            for topic in wanted.values()
            for index in topic.partitions
        )
        self._parts.share.see(self._sight.mirrored_once(hidden).union(shown))
        self._parts.orders.note_known(settled)
        ids = self._map_log.state.topic_ids
        self._left_behind.forget_left_behind(source, hidden, target, ids, now_ms())
        self.take_share()
        self.has_looked = True
        await self._hear_of_silent()
        await self._quiet_targets.look(self._parts.partitions.own, now_ms())

    def take_share(self) -> None:
        """Take what is this worker's of the topics last seen."""
        wanted, hidden, target = self._seen
        self._take_hidden(hidden)
        for topic in wanted.values():
            target_name = self._names.on_target(topic.name)
            try:
                self._take(topic, None if target is None else target.topics.get(target_name))
            except Exception as fault:  # noqa: BLE001 - what is unforeseen has no type
                self._fail(topic.name, fault)
            else:
                self.fault.clear(topic.name)
        self._parts.wakeups.position_more.wake()
        self._parts.wakeups.fetch_anew()

    def _fail(self, topic: str, fault: Exception) -> None:
        """Stop what is mirrored of a topic that cannot be taken; the others go on."""
        self.fault.note(f"topic {topic}: {described(fault)}", topic)
        for partition in self._parts.partitions.of_topic(topic):
            self._interruptions.stop_as_failed(partition, "discovery", fault)

    def _take_hidden(self, hidden: Collection[str]) -> None:
        """Show what was mirrored and may not be seen any more, also behind a start."""
        own, now = self._parts.partitions.own, now_ms()
        for topic_partition in (
            self._sight.mirrored_once(hidden) & self._parts.share.own - own.keys()
        ):
            topic_id = self._map_log.state.topic_ids.get(topic_partition.topic, NO_ID)
            partition = self._discovered(topic_partition, topic_id, now)
            self._parts.partitions.take(partition)
            self._interruptions.stop(partition, PartitionState.NOT_AUTHORISED, NO_RIGHT, now)

    def _doubt_maps(self, lacking: Collection[str]) -> None:
        doubt_maps(self._parts.partitions, self._interruptions, lacking, now_ms())

    async def _begin_anew(self) -> None:
        """Delete the target's copy of topics that are to be mirrored from their first record.

        What follows makes them again, and a partition of an empty topic begins at the beginning.
        """
        orders = self._parts.orders
        kept = set(filter(orders.is_kept, orders.to_begin_anew))
        for topic in sorted(orders.to_begin_anew - kept):
            may_begin = await self._may_begin_anew(topic) and self._is_at_rest(topic)
            if may_begin and orders.may_delete(topic):
                await self._delete_copy(topic)

    async def _may_begin_anew(self, topic: str) -> bool:
        """Whether the copy may go now; one with records of its own stays for good."""
        parts = self._parts
        has_own = await holds_own(parts.partitions, parts.reverse, self._links.source_admin, topic)
        topic_partitions = {
            topic_partition
            for topic_partition in parts.share.seen
            if topic_partition.topic == topic
        }
        if has_own is None or not topic_partitions <= parts.share.own:
            return False  # the next assignment gives all of the topic to who leads
        may_have = any(map(parts.reverse.lacks_map_of, topic_partitions))
        former = self._renamed.former_name(topic)
        has_come = former is not None and former in parts.reverse.former_names
        if has_own or may_have or has_come:
            why = HAS_OWN if has_own else may_have_own(parts.config.current.topic_set)
            if has_come:
                why = CAME_FROM.format(former=former)
            _LOG.error("%s: %s: not deleted on the target: %s", self._name, topic, why)
            parts.orders.want_anew_no_more(topic)
            return False
        return True

    def _is_at_rest(self, topic: str) -> bool:
        """Interrupt the topic's partitions; return whether nothing of them is under way."""
        of_topic = self._parts.partitions.of_topic(topic)
        for partition in of_topic:
            partition.leaders.follow_target(NO_LEADER)
            if partition.state not in STOPPED | {PartitionState.PAUSED}:
                self._interruptions.interrupt(partition, BEGINS_ANEW, now_ms())
        is_at_rest = all(partition.in_flight.is_settled for partition in of_topic)
        if not is_at_rest:
            self._parts.wakeups.refresh.wake()
        return is_at_rest

    async def _delete_copy(self, topic: str) -> None:
        """Delete a topic on the target, and let its partitions begin at the beginning."""
        of_topic = self._parts.partitions.of_topic(topic)
        self._seen.wanted.pop(topic, None)  # until the next look nothing of it may be taken
        ours = {partition.topic_partition for partition in of_topic}
        ends = await read_target_ends(self._links.target_admin, self._names, ours)
        given_up = list(told_given_up(self._config.current, of_topic, ends))
        try:
            await delete_topic(self._links.target_admin, self._names.on_target(topic))
        except TopicRefused as refused:
            self._complain(refused)
            return
        _LOG.warning("%s: %s: deleted on the target: %s", self._name, topic, BEGINS_ANEW)
        for line in given_up:
            _LOG.warning("%s: %s", self._name, line)
        await self._map_log.forget_topic(topic)  # whoever makes it again, and in which run
        self._parts.orders.begin_anew(topic)
        for partition in of_topic:
            partition.offset_map.advance(0)
            if partition.state in STOPPED:
                partition.retry(BEGINS_ANEW, now_ms())

    async def _hear_of_silent(self) -> None:
        """Learn the source's ends where nothing has been fetched, so that the lag there is known.

        That is so for stopped partitions, and where the target is slow and all room is taken.
        """
        now = now_ms()
        silent = {
            topic_partition: partition
            for topic_partition, partition in self._parts.partitions.own.items()
            if partition.target.is_positioned and now - partition.source.heard_ms > SILENT_MS
        }
        await hear_of(self._links.source_admin, silent)

    async def _shape_target(self, wanted: Mapping[str, TopicView]) -> ClusterView:
        """Create, grow and configure the target's topics; return the target as it then is.

        Topics go by the target's names here. The copy of a topic that was made again on the source
        stays as it is (mirror.topics.recreated), and nothing is made for one that has another name
        now (mirror.topics.renamed_copies).
        """
        target = await self._sight.target(wanted)
        self._renamed.look(target, self._map_log.state.target_ids)
        is_due = now_ms() - self._configs_read_ms >= CONFIG_INTERVAL_MS
        shapes = {
            self._names.on_target(name): topic
            for name, topic in wanted.items()
            if name not in self._renamed and not self._recreated.leaves_copy_alone(topic, target)
            if not is_hidden(target, self._names.on_target(name))
        }
        lacking = {name for name in shapes if not exists(target, name)}
        self._doubt_maps(lacking)
        asked = set(shapes) if is_due else lacking
        settings = self._config.current.settings
        source_configs = await self._source_configs(asked, with_defaults=settings.takes_defaults)
        target_configs = await topic_configs(self._links.target_admin, asked - lacking)
        if is_due:
            self.refused.keep(source_configs)
            await self._take_back(source_configs, target_configs)
        if self._config.current.is_active_active:
            source_configs |= {
                name: self._own_changes.due(name, source_configs[name], configs)
                for name, configs in target_configs.items()
                if name in source_configs
            }
        now = now_ms()
        actions = plan_topics(
            {
                name: topic_shape(
                    topic, self.refused.acceptable(name, source_configs.get(name, {}), now)
                )
                for name, topic in shapes.items()
            },
            {
                name: topic_shape(target.topics[name], target_configs.get(name))
                for name in shapes
                if name not in lacking
            },
            replication_factor=self._config.current.replication_factor,
            live_brokers=len(target.brokers),
            settings=settings,
        )
        for action in actions:
            await self._apply(action)
        if is_due:
            self._configs_read_ms = now_ms()
        if any(isinstance(action, CreateTopic | GrowTopic) for action in actions):
            self._parts.wakeups.refresh.wake()
            target = await self._sight.target(wanted)
        return target

    async def _take_back(
        self, source: Mapping[str, dict[str, str]], target: Mapping[str, dict[str, str]]
    ) -> None:
        """Let defaults hold again for what the source has taken back."""
        if self._config.current.is_active_active:
            return  # the other direction may have set it
        for topic, gone in self._taken_back.due(source, target).items():
            names = [name for name in gone if self._config.current.settings.names.matches(name)]
            try:
                if names:
                    await reset_configs(self._links.target_admin, topic, names)
                    _LOG.info("%s: %s: taken back: %s", self._name, topic, ", ".join(names))
            except TopicRefused as refused:
                self._complain(refused)
            else:
                self._taken_back.done(topic, gone)

    async def _source_configs(
        self, asked: Iterable[str], *, with_defaults: bool
    ) -> dict[str, dict[str, str]]:
        """Return what the source has set, both by the target's names."""
        on_target = {source: name for name in asked if (source := self._names.on_source(name))}
        configs = await topic_configs(
            self._links.source_admin, on_target.keys(), with_defaults=with_defaults
        )
        return {on_target[topic]: settings for topic, settings in configs.items()}

    async def _apply(self, action: TopicAction) -> None:
        """Change the target as far as it lets us."""
        try:
            applied = await apply_acceptable(
                self._links.target_admin, action, self.refused.suspects
            )
        except TopicRefused as refused:
            self._complain(refused)
            return
        self._complaints.pop(action.topic, None)
        if applied.was_done:
            _LOG.info("%s: %s", self._name, applied.action)
        if applied.was_done and isinstance(action, CreateTopic):
            self._created.add(action.topic)
        self._note_refused(action, applied)

    def _note_refused(self, asked: TopicAction, applied: Applied) -> None:
        """Remember what the target would not take, and say it once."""
        if isinstance(applied.action, CreateTopic | SetConfigs):
            self.refused.forget(asked.topic, applied.action.configs)
        if isinstance(asked, GrowTopic):
            return
        for name, reason in applied.refused.items():
            refused = RefusedSetting(
                topic=asked.topic, name=name, value=asked.configs[name], reason=reason
            )
            if self.refused.note(refused, now_ms()):
                _LOG.warning(
                    "%s: topic %s is mirrored without %s=%s, which %s refuses: %s",
                    self._name,
                    refused.topic,
                    refused.name,
                    refused.value,
                    self._config.current.target,
                    refused.reason,
                )

    def _complain(self, refused: TopicRefused) -> None:
        """Say it once, and with the partitions that wait for it."""
        known = self._complaints.get(refused.topic)
        if known is None or str(known) != str(refused):
            _LOG.warning("%s: %s", self._name, refused)
        self._complaints[refused.topic] = refused

    def _take(self, source: TopicView, target: TopicView | None) -> None:
        now = now_ms()
        parts = self._parts
        for index, view in source.partitions.items():
            if (source.name, index) not in parts.share.own:
                continue
            topic_partition = TopicPartition(source.name, index)
            partition = parts.partitions.own.get(topic_partition)
            if partition is None:
                partition = self._discovered(topic_partition, source.topic_id, now)
                parts.partitions.take(partition)
            if self._renamed.follow(partition, now) or self._stops_as_hidden(partition, target):
                follow_leaders(self._interruptions, partition, view, None, None)
                continue
            self._recreated.follow(partition, source, has_copy=target is not None, now_ms=now)
            target_view = None if target is None else target.partitions.get(index)
            refused = self._complaints.get(partition.target_topic)
            follow_leaders(self._interruptions, partition, view, target_view, refused)
            is_new = target is not None and partition.target.meet_topic(target.topic_id)
            if is_new and (partition.is_flowing or is_positioning(partition)):
                self._interruptions.interrupt(partition, MADE_AGAIN, now, at_once=True)

    def _stops_as_hidden(self, partition: MirroredPartition, target: TopicView | None) -> bool:
        """Stop what is written to a topic that the target hides; its map stays true."""
        is_hidden = target is not None and target.error_code in UNAUTHORISED
        if is_hidden and partition.state not in STOPPED | {PartitionState.PAUSED}:
            self._interruptions.stop(
                partition, PartitionState.NOT_AUTHORISED, NO_RIGHT_ON_TARGET, now_ms()
            )
        return is_hidden

    def _discovered(
        self, topic_partition: TopicPartition, topic_id: UUID, now: int
    ) -> MirroredPartition:
        """Return a partition as it begins here, with what the map knows of it."""
        state = self._map_log.state
        partition = MirroredPartition(
            *topic_partition,
            topic_id=topic_id,
            offset_map=state.map_of(topic_partition),
            now_ms=now,
            target_topic=self._names.on_target(topic_partition.topic),
            budget=self._parts.budget,
        )
        partition.target.expect_topic(state.target_ids.get(topic_partition))
        return partition
