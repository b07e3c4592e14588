"""Producers, zombies, coordinators that die and markers in any order, against what was promised.

The model is what clients were told: a transaction whose commit was acknowledged is read whole, one
whose abort was acknowledged is not read at all, and nothing else is ever open for good.
"""

from dataclasses import dataclass, field, replace

from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
)

from broker.log.markers import Marker
from broker.transactions import decisions, ending
from broker.transactions.decisions import ENDING, LAST_EPOCH, Decided, NeedsProducerId, Producer
from broker.transactions.ending import EndAsked
from broker.transactions.marking import REPLACED
from broker.transactions.shard import Transactions
from tests.broker.transactions.model_partition import ModelPartition
from tests.properties import examples
from wire.errors import ErrorCode
from wire.topic_partition import TopicPartition
from wire.transaction_state import (
    BUMPS_EPOCH,
    TransactionMetadata,
    TransactionStatus,
    decode_value,
    encode_value,
)

TIMEOUT_MS = 1_000
IDS = ("a", "b")
NAMES = [TopicPartition("t", index) for index in range(3)]


@dataclass(eq=False, slots=True)
class Instance:
    """One producer as its client holds it, until something fences it.

    is_newer   of transaction version 2: it adds no partitions, and each end gives it another epoch
    """

    transactional_id: str
    producer: Producer
    is_newer: bool = False
    is_fenced: bool = False
    is_open: bool = False
    added: set[TopicPartition] = field(default_factory=set)
    sequences: dict[TopicPartition, int] = field(default_factory=dict)
    written: list[tuple[TopicPartition, str]] = field(default_factory=list)


class TransactionMachine(RuleBasedStateMachine):
    """The coordinator's decisions, its records, and the logs that the markers go to."""

    instances = Bundle("instances")

    def __init__(self) -> None:
        super().__init__()
        self.kept = Transactions()
        self.coordinator_epoch = 0
        self.log: dict[str, bytes] = {}
        self.partitions = {name: ModelPartition() for name in NAMES}
        self.now_ms = 0
        self.next_id = 1_000
        self.next_value = 0
        self.marked: dict[str, set[TopicPartition]] = {}
        self.committed: set[str] = set()
        self.aborted: set[str] = set()
        self.newest: dict[str, Instance] = {}
        self.delayed: list[tuple[TransactionMetadata, int]] = []

    def write(self, transactional_id: str, kept: TransactionMetadata) -> None:
        before = self.kept.get(transactional_id)
        if before is not None:
            assert kept.status in decisions.ALLOWED[before.status] or kept.status is before.status
        self.log[transactional_id] = encode_value(kept)
        self.kept.replay((transactional_id, kept))
        if kept.status in ENDING:
            self.marked[transactional_id] = set()

    def decided(self, transactional_id: str, decided: Decided) -> ErrorCode:
        if decided.kept is not None:
            self.write(transactional_id, decided.kept)
        return decided.error

    def init(self, transactional_id: str, expected: Producer | None) -> Producer | ErrorCode:
        known = self.kept.get(transactional_id)
        decided = decisions.init_producer(known, expected, TIMEOUT_MS, None, self.now_ms)
        if isinstance(decided, NeedsProducerId):
            self.next_id += 1
            decided = decisions.init_producer(
                known, expected, TIMEOUT_MS, self.next_id, self.now_ms
            )
        assert isinstance(decided, Decided)
        error = self.decided(transactional_id, decided)
        if error is not ErrorCode.NONE:
            return error
        assert decided.kept is not None
        return Producer(producer_id=decided.kept.producer_id, epoch=decided.kept.producer_epoch)

    def note_fenced(self, transactional_id: str) -> None:
        """Whoever had the id before is a zombie now; what it had not ended is aborted."""
        earlier = self.newest.get(transactional_id)
        if earlier is not None:
            earlier.is_fenced = True
            if earlier.is_open:
                self.aborted |= {value for _, value in earlier.written}

    @rule(target=instances, transactional_id=st.sampled_from(IDS), is_newer=st.booleans())
    def a_new_instance_comes(self, transactional_id: str, is_newer: bool) -> object:
        given = self.init(transactional_id, None)
        known = self.kept.get(transactional_id)
        if isinstance(given, ErrorCode):
            assert given is ErrorCode.CONCURRENT_TRANSACTIONS
            if known is not None and known.status is TransactionStatus.PREPARE_ABORT:
                self.note_fenced(transactional_id)
            return multiple()
        self.note_fenced(transactional_id)
        instance = Instance(transactional_id, given, is_newer)
        self.newest[transactional_id] = instance
        return instance

    @rule(instance=instances)
    def an_instance_asks_for_the_next_epoch(self, instance: Instance) -> None:
        """After an error it does not understand (KIP-360); twice, as its answer may be lost."""
        assume(not instance.is_open)
        first = self.init(instance.transactional_id, instance.producer)
        again = self.init(instance.transactional_id, instance.producer)
        if instance.is_fenced:
            assert isinstance(first, ErrorCode)
            return
        if isinstance(first, Producer):
            assert again == first
            instance.producer = first
            instance.sequences.clear()

    @rule(transactional_id=st.sampled_from(IDS), names=st.lists(st.sampled_from(NAMES), max_size=4))
    def the_present_producer_writes(
        self, transactional_id: str, names: list[TopicPartition]
    ) -> None:
        instance = self.present(transactional_id)
        for name in names:
            if not instance.is_newer:
                self.a_partition_is_added(instance, name)
            self.a_record_is_produced(instance, name)

    @rule(
        transactional_id=st.sampled_from(IDS), is_commit=st.booleans(), is_completed=st.booleans()
    )
    def the_present_producer_ends(
        self, transactional_id: str, is_commit: bool, is_completed: bool
    ) -> None:
        self.a_transaction_is_ended(self.present(transactional_id), is_commit, is_completed)
        if is_completed:
            self.an_end_is_complete(transactional_id)

    def present(self, transactional_id: str) -> Instance:
        """Return the newest instance, the first one where there is none."""
        while transactional_id not in self.newest:
            given = self.init(transactional_id, None)
            if isinstance(given, Producer):
                self.newest[transactional_id] = Instance(transactional_id, given)
            else:
                self.an_end_is_complete(transactional_id)
        return self.newest[transactional_id]

    @rule(instance=instances, name=st.sampled_from(NAMES))
    def a_partition_is_added(self, instance: Instance, name: TopicPartition) -> None:
        assume(not instance.is_newer)
        self.add(instance, name)

    def add(self, instance: Instance, name: TopicPartition) -> ErrorCode:
        known = self.kept.get(instance.transactional_id)
        decided = decisions.add_partitions(
            known,
            instance.producer,
            frozenset({name}),
            self.now_ms,
            client_version=BUMPS_EPOCH if instance.is_newer else 0,
        )
        error = self.decided(instance.transactional_id, decided)
        assert not (instance.is_fenced and error is ErrorCode.NONE)
        if error is ErrorCode.NONE:
            if not instance.is_open:
                instance.is_open, instance.written = True, []
                instance.added = set()
            instance.added.add(name)
        return error

    @rule(instance=instances, name=st.sampled_from(NAMES))
    def a_record_is_produced(self, instance: Instance, name: TopicPartition) -> None:
        """Whatever the client believes: a leader takes what the coordinator knows to be open."""
        partition, producer = self.partitions[name], instance.producer
        is_verified = partition.is_open(producer.producer_id, producer.epoch)
        if not is_verified and instance.is_newer:
            is_verified = self.add(instance, name) is ErrorCode.NONE
        elif not is_verified:
            known = self.kept.get(instance.transactional_id)
            is_verified = decisions.verify(known, producer, name) is ErrorCode.NONE
        self.next_value += 1
        value = f"{instance.transactional_id}{self.next_value}"
        sequence = instance.sequences.get(name, 0)
        error = partition.produce(
            producer.producer_id, producer.epoch, sequence, value, is_verified=is_verified
        )
        if error is ErrorCode.NONE:
            assert not instance.is_fenced or partition.is_open(producer.producer_id, producer.epoch)
            instance.sequences[name] = sequence + 1
            if instance.is_open:
                instance.written.append((name, value))
            if instance.is_fenced or not instance.is_open:
                self.aborted.add(value)

    @rule(instance=instances, is_commit=st.booleans(), is_answer_lost=st.booleans())
    def a_transaction_is_ended(
        self, instance: Instance, is_commit: bool, is_answer_lost: bool
    ) -> None:
        """Where the answer is lost, the client asks again until it has one."""
        ended = self.end(instance, is_commit)
        assert not (instance.is_fenced and isinstance(ended, Producer))
        if isinstance(ended, ErrorCode):
            return
        if is_answer_lost:
            self.the_answer_comes_again(instance, is_commit, ended)
        values = {value for _, value in instance.written} if instance.is_open else set()
        if is_commit:
            self.committed |= values
        else:
            self.aborted |= values
        instance.is_open, instance.written = False, []
        if instance.is_newer:
            assert ended != instance.producer
            instance.producer = ended
            instance.sequences.clear()

    def end(self, instance: Instance, is_commit: bool) -> Producer | ErrorCode:
        asked = EndAsked(
            producer=instance.producer, is_commit=is_commit, bumps_epoch=instance.is_newer
        )
        known = self.kept.get(instance.transactional_id)
        decided = ending.end(known, asked, None, self.now_ms)
        if isinstance(decided, NeedsProducerId):
            self.next_id += 1
            decided = ending.end(known, asked, self.next_id, self.now_ms)
        assert isinstance(decided, Decided)
        error = self.decided(instance.transactional_id, decided)
        now = self.kept.get(instance.transactional_id)
        return ending.successor(now) if now and error is ErrorCode.NONE else error

    def the_answer_comes_again(self, instance: Instance, is_commit: bool, ended: Producer) -> None:
        """Also from the next coordinator; while the end is under way it says so."""
        if self.end(instance, is_commit) is ErrorCode.CONCURRENT_TRANSACTIONS:
            self.the_coordinator_dies()
            self.an_end_is_complete(instance.transactional_id)
        assert self.end(instance, is_commit) == ended

    @rule(transactional_id=st.sampled_from(IDS), name=st.sampled_from(NAMES))
    def a_marker_is_written(self, transactional_id: str, name: TopicPartition) -> None:
        """In any order, and again where the answer was lost."""
        kept = self.kept.get(transactional_id)
        if kept is None or kept.status not in ENDING or name not in kept.partitions:
            return
        self.delayed.append((kept, self.coordinator_epoch))
        assert self.mark(kept, name, self.coordinator_epoch) is ErrorCode.NONE
        self.marked[transactional_id].add(name)

    def mark(
        self, kept: TransactionMetadata, name: TopicPartition, coordinator_epoch: int
    ) -> ErrorCode:
        is_abort = kept.status is TransactionStatus.PREPARE_ABORT
        marker = Marker(is_abort=is_abort, coordinator_epoch=coordinator_epoch)
        return self.partitions[name].mark(kept.producer_id, kept.producer_epoch, marker)

    @rule(name=st.sampled_from(NAMES), data=st.data())
    def a_marker_of_a_dead_coordinator_arrives(
        self, name: TopicPartition, data: st.DataObject
    ) -> None:
        """It was under way when its coordinator died, and the next one has written since."""
        table = self.partitions[name].table
        stale = [
            (kept, epoch)
            for kept, epoch in self.delayed
            if (entry := table.get(kept.producer_id)) is not None
            and entry.coordinator_epoch > epoch
        ]
        if stale:
            kept, epoch = data.draw(st.sampled_from(stale))
            assert self.mark(kept, name, epoch) in REPLACED

    @rule(transactional_id=st.sampled_from(IDS))
    def an_end_is_complete(self, transactional_id: str) -> None:
        kept = self.kept.get(transactional_id)
        if kept is not None and kept.status in ENDING:
            for name in kept.partitions - self.marked[transactional_id]:
                assert self.mark(kept, name, self.coordinator_epoch) is ErrorCode.NONE
            self.write(transactional_id, ending.complete(kept, self.now_ms))

    @rule(ms=st.sampled_from([1, TIMEOUT_MS + 1]))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms
        for transactional_id, kept in list(self.kept.all().items()):
            if decisions.has_timed_out(kept, self.now_ms):
                self.note_fenced(transactional_id)
                self.write(transactional_id, decisions.fence(kept, self.now_ms))

    @rule()
    def the_coordinator_dies(self) -> None:
        """The next one knows what the log says: no earlier epoch, no earlier producer id."""
        self.coordinator_epoch += 1
        self.kept = Transactions()
        for transactional_id, raw in self.log.items():
            self.kept.replay((transactional_id, decode_value(raw)))
        self.marked = {transactional_id: set() for transactional_id in self.log}

    @rule(name=st.sampled_from(NAMES))
    def a_leader_dies(self, name: TopicPartition) -> None:
        self.partitions[name].reload()

    @rule(transactional_id=st.sampled_from(IDS))
    def epochs_are_used_up(self, transactional_id: str) -> None:
        """As after 32,766 restarts of the producer."""
        kept = self.kept.get(transactional_id)
        newest = self.newest.get(transactional_id)
        if kept is not None and kept.status is TransactionStatus.EMPTY:
            if newest is not None and not newest.is_fenced:
                newest.producer = replace(newest.producer, epoch=LAST_EPOCH)
                newest.sequences.clear()
            self.write(transactional_id, replace(kept, producer_epoch=LAST_EPOCH))

    @rule(instance=consumes(instances))
    def an_instance_is_forgotten(self, instance: Instance) -> None:
        """It goes without a word; its transaction times out, or another instance comes."""
        if self.newest.get(instance.transactional_id) is not instance:
            instance.is_fenced = True

    @invariant()
    def nothing_aborted_is_read(self) -> None:
        for partition in self.partitions.values():
            assert not self.aborted & set(partition.committed())

    @invariant()
    def no_producer_is_known_twice(self) -> None:
        known = [kept.producer_id for kept in self.kept.all().values()]
        known += [
            kept.next_producer_id
            for kept in self.kept.all().values()
            if kept.next_producer_id != decisions.NO_ID
        ]
        assert len(known) == len(set(known))

    def teardown(self) -> None:
        """Let all that is under way end, and hold what is read against what was promised."""
        self.time_passes(TIMEOUT_MS + 1)
        for transactional_id in IDS:
            self.an_end_is_complete(transactional_id)
        read = {value for one in self.partitions.values() for value in one.committed()}
        assert not self.committed & self.aborted
        assert self.committed <= read, "a committed record is missing"
        assert not self.aborted & read, "an aborted record is read"
        for name, partition in self.partitions.items():
            assert partition.last_stable == partition.end, f"{name} hangs"


TestTransactions = TransactionMachine.TestCase
TestTransactions.settings = settings(
    max_examples=examples(40), stateful_step_count=30, deadline=None
)
