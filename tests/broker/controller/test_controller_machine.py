"""Against any order of deaths, returns, requests and controllers that die between two writes.

No acknowledged record may be lost, epochs only grow, and when it is quiet again everything is as
if it had been computed anew.
"""

from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.controller.cluster import (
    NO_LEADER,
    BrokersChanged,
    DeletionRequested,
    Election,
    ElectionRequested,
    MoveRequested,
    ShutdownRequested,
    TopicFound,
    UncleanAllowed,
)
from broker.zookeeper.tree import TopicAssignment
from tests.broker.controller.model import Model
from tests.properties import examples
from wire.topic_partition import TopicPartition

BROKERS = range(4)
REPLICAS = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True).map(tuple)
FEW = 3
DIES_AFTER = st.none() | st.none() | st.integers(0, 3)
"""After so many writes the controller dies, if there are that many; mostly it does not."""


class ControllerMachine(RuleBasedStateMachine):
    """What can happen to a cluster; the promise about records is checked inside the model."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model(BROKERS)
        self.made = 0

    def partitions(self) -> list[TopicPartition]:
        cluster = self.model.cluster
        return sorted(part for part in cluster.partitions() if cluster.exists(part))

    def a_partition(self, data: st.DataObject) -> TopicPartition:
        return data.draw(st.sampled_from(self.partitions()))

    def look(self, dies_after: int | None = None) -> None:
        self.model.happen(BrokersChanged(live=self.model.live()), dies_after)

    @rule(id_=st.sampled_from(BROKERS), dies_after=DIES_AFTER, is_noticed=st.booleans())
    def a_broker_dies(self, id_: int, dies_after: int | None, is_noticed: bool) -> None:
        broker = self.model.brokers[id_]
        broker.is_alive = False
        broker.views = {}
        if is_noticed:
            self.look(dies_after)

    @rule(id_=st.sampled_from(BROKERS), dies_after=DIES_AFTER)
    def a_broker_comes_back(self, id_: int, dies_after: int | None) -> None:
        broker = self.model.brokers[id_]
        if not broker.is_alive:
            broker.is_alive = True
            broker.registration = self.model.registration(id_)
            self.look(dies_after)

    @rule(id_=st.sampled_from(BROKERS))
    def a_broker_is_cut_off_from_the_controller(self, id_: int) -> None:
        self.model.brokers[id_].is_deaf = True

    @rule(id_=st.sampled_from(BROKERS))
    def a_broker_hears_what_it_missed(self, id_: int) -> None:
        self.model.hear_all(id_)

    @rule()
    def another_controller_takes_over(self) -> None:
        self.model.begin_controller()

    @initialize()
    def there_is_a_topic(self) -> None:
        self.a_topic_is_created([(0, 1, 2)], None)

    @precondition(lambda self: len(self.partitions()) < FEW)
    @rule(replicas=st.lists(REPLICAS, min_size=1, max_size=2), dies_after=DIES_AFTER)
    def a_topic_is_created(self, replicas: list[tuple[int, ...]], dies_after: int | None) -> None:
        self.made += 1
        name = f"t{self.made}"
        topic = TopicAssignment(topic_id=UUID(int=self.made), replicas=dict(enumerate(replicas)))
        self.model.tree.topics[name] = topic
        self.model.happen(TopicFound(name=name, assignment=topic), dies_after)

    @precondition(lambda self: 0 < len(self.partitions()) < FEW)
    @rule(data=st.data(), added=REPLICAS, dies_after=DIES_AFTER)
    def a_topic_grows(
        self, data: st.DataObject, added: tuple[int, ...], dies_after: int | None
    ) -> None:
        name = self.a_partition(data).topic
        present = self.model.tree.topics[name]
        if present.moving():
            return
        grown = TopicAssignment(
            topic_id=present.topic_id,
            replicas={**present.replicas, len(present.replicas): added},
        )
        self.model.tree.topics[name] = grown
        self.model.happen(TopicFound(name=name, assignment=grown), dies_after)

    @precondition(lambda self: self.partitions())
    @rule(data=st.data(), dies_after=DIES_AFTER)
    def a_topic_is_deleted(self, data: st.DataObject, dies_after: int | None) -> None:
        name = self.a_partition(data).topic
        self.model.tree.deleting.add(name)
        self.model.happen(DeletionRequested(name=name), dies_after)

    @rule(dies_after=DIES_AFTER)
    def deletions_are_confirmed(self, dies_after: int | None) -> None:
        self.model.confirm_deletions(dies_after)

    @precondition(lambda self: self.model.leaders())
    @rule(data=st.data())
    def a_record_is_produced(self, data: st.DataObject) -> None:
        self.model.produce(*data.draw(st.sampled_from(sorted(self.model.leaders()))))

    @precondition(lambda self: self.model.leaders())
    @rule(data=st.data(), dies_after=DIES_AFTER)
    def followers_catch_up(self, data: st.DataObject, dies_after: int | None) -> None:
        leader, partition = data.draw(st.sampled_from(sorted(self.model.leaders())))
        view = self.model.brokers[leader].views[partition]
        joined = [
            id_
            for id_ in view.replicas
            if self.model.brokers[id_].is_alive and self.model.follow(id_, partition)
        ]
        self.model.propose(leader, partition, {*view.isr, *joined}, dies_after)

    @precondition(lambda self: self.model.leaders())
    @rule(data=st.data(), dies_after=DIES_AFTER)
    def a_follower_falls_behind(self, data: st.DataObject, dies_after: int | None) -> None:
        leader, partition = data.draw(st.sampled_from(sorted(self.model.leaders())))
        isr = self.model.brokers[leader].views[partition].isr
        dropped = data.draw(st.sampled_from(isr))
        self.model.propose(leader, partition, {*isr} - {dropped} | {leader}, dies_after)
        if (leader, partition) in self.model.leaders():
            self.model.produce(leader, partition)

    @precondition(lambda self: self.model.leaders())
    @rule(data=st.data(), dies_after=DIES_AFTER)
    def a_leader_dies(self, data: st.DataObject, dies_after: int | None) -> None:
        leader, _ = data.draw(st.sampled_from(sorted(self.model.leaders())))
        self.a_broker_dies(leader, dies_after, is_noticed=True)

    @rule(id_=st.sampled_from(BROKERS), dies_after=DIES_AFTER)
    def a_broker_wants_to_leave(self, id_: int, dies_after: int | None) -> None:
        self.model.happen(ShutdownRequested(broker_id=id_), dies_after)

    @precondition(lambda self: self.partitions())
    @rule(data=st.data(), dies_after=DIES_AFTER)
    def preferred_leaders_are_elected(self, data: st.DataObject, dies_after: int | None) -> None:
        partitions = frozenset({self.a_partition(data)})
        event = ElectionRequested(election=Election.PREFERRED, partitions=partitions)
        self.model.happen(event, dies_after)

    @precondition(lambda self: self.partitions())
    @rule(data=st.data(), wanted=st.none() | REPLICAS, dies_after=DIES_AFTER)
    def a_partition_is_moved(
        self, data: st.DataObject, wanted: tuple[int, ...] | None, dies_after: int | None
    ) -> None:
        targets = {self.a_partition(data): wanted}
        self.model.happen(MoveRequested(targets=targets), dies_after)

    @precondition(lambda self: self.model.cluster.topics)
    @rule(data=st.data(), dies_after=DIES_AFTER)
    def unclean_elections_are_allowed(self, data: st.DataObject, dies_after: int | None) -> None:
        topic = data.draw(st.sampled_from(sorted(self.model.cluster.topics)))
        self.model.unclean |= {topic}
        self.model.happen(UncleanAllowed(topics=self.model.unclean), dies_after)

    @invariant()
    def the_controller_knows_what_is_written(self) -> None:
        model = self.model
        assert dict(model.cluster.topics) == model.tree.topics
        assert dict(model.cluster.states) == model.tree.states
        assert model.cluster.deleting == model.tree.deleting & model.tree.topics.keys()

    @invariant()
    def a_leader_is_in_sync_and_a_replica(self) -> None:
        cluster = self.model.cluster
        for partition, state in cluster.states.items():
            if not cluster.exists(partition):
                continue
            assert state.isr
            assert len(set(state.isr)) == len(state.isr)
            assert set(state.isr) <= set(cluster.replicas(partition))
            if state.leader != NO_LEADER:
                assert state.leader in cluster.live
                assert state.leader in state.isr

    @invariant()
    def nobody_leads_only_where_nobody_can(self) -> None:
        cluster = self.model.cluster
        for partition in self.partitions():
            state = cluster.states.get(partition)
            eligible = cluster.replicas(partition) if state is None else state.isr
            if state is None or state.leader == NO_LEADER:
                assert not any(cluster.can_lead(id_, partition) for id_ in eligible)

    def teardown(self) -> None:
        """All come back, followers catch up, deletions end: it is as if nothing had happened."""
        model = self.model
        for id_, broker in model.brokers.items():
            model.hear_all(id_)
            broker.is_alive = False
            broker.views = {}
        self.look()
        for id_, broker in model.brokers.items():
            broker.is_alive = True
            broker.registration = model.registration(id_)
        self.look()
        for _ in range(3):  # a finished move tells its replicas anew
            for leader, partition in model.leaders():
                view = model.brokers[leader].views.get(partition)
                if view is None or view.leader != leader:
                    continue
                for id_ in view.replicas:
                    model.follow(id_, partition)
                model.propose(leader, partition, view.replicas)
            model.confirm_deletions()
        assert not model.cluster.deleting
        for partition in model.cluster.partitions():
            state = model.cluster.states[partition]
            assert set(state.isr) == set(model.cluster.replicas(partition))
            for id_ in model.cluster.replicas(partition):
                view = model.brokers[id_].views[partition]
                assert (view.leader, view.leader_epoch) == (state.leader, state.leader_epoch)
        assert not any(topic.moving() for topic in model.cluster.topics.values())


TestControllerMachine = ControllerMachine.TestCase
TestControllerMachine.settings = settings(
    max_examples=examples(40), stateful_step_count=40, deadline=None
)
