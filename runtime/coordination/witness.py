"""The tree in the witness ZooKeeper: its paths, and its nodes as values with their JSON.

<path>/pair                                  Pair: the pair's id and the ids of its clusters
<path>/active                                ActiveSite: who may write, and its epoch
<path>/evidence-number                       EvidenceNumber: of the newest evidence on the clusters
<path>/mirror/<source>-<target>/worker       WorkerInfo, ephemeral: the daemon that leads the flow
<path>/mirror/<source>-<target>/workers/<id> mirror.workers.handover.Member, ephemeral: one at work
<path>/mirror/<source>-<target>/assignment   mirror.workers.handover: who mirrors which partition
<path>/mirror/<source>-<target>/command      FlowCommand, by failover: run or stop
<path>/mirror/<source>-<target>/acknowledged FlowCommand, by the daemon: carried out and settled
<path>/mirror/<source>-<target>/running      RunningFlow, by the leader: what it mirrors
<path>/mirror/<source>-<target>/known-ends   `known_ends`, by the leader: the source's ends
<path>/mirror/<source>-<target>/known-ends-parts/<part> what is long of it
<path>/mirror/<source>-<target>/orders       mirror.state.orders: what is paused, what to restart
<path>/mirror/<source>-<target>/map-writers  MapWriters: the producers that may write the map
<path>/mirror/<source>-<target>/checkpoint-writers  MapWriters: those that may write checkpoints
<path>/mirror/<source>-<target>/making-producer  ephemeral: who makes the mirror's producer id
<path>/failover/lease                        ephemeral: the one controller
<path>/failover/lease-wanted                 ephemeral: who waits for it; a rehearsal gives way
<path>/failover/hold                         failover.automatic.hold: nothing is to be promoted
<path>/failover/rehearsal                    ephemeral: the one rehearsal that runs
<path>/failover/rehearsals/<number>          failover.rehearsal.outcome: what one found out
<path>/failover/votes/<voter>                failover.automatic.votes, ephemeral: what it sees
<path>/failover/journal/<epoch>              the journal of one promotion, owned by failover
<path>/failover/journal-parts/<epoch>/<part> what is long of it (runtime.coordination.long_document)
<path>/groups/<group>/<member>               ephemeral, of failover.client.position_handover
<path>/patterns                              SetTopics, of a named set alone
<path>/sets                                  of sets of topics: each has a path of its own below,
                                             for all but what they share (`WitnessPaths.of_pair`)
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, ClassVar, Final, Self, get_type_hints
from urllib.parse import quote

from runtime.set_option import set_option
from runtime.untrusted_json import LARGEST_INT32, text, unpack_json, whole_number
from wire.topic_partition import TopicPartition
from wire.values import frozen


class WitnessGarbled(ValueError):
    """A node holds something else than its JSON; the message names the node."""


def recover_remedy(topic_set: str | None) -> str:
    """Return what to do about a node that both clusters know of, with a semicolon before it."""
    return (
        f"; `failover recover{set_option(topic_set)}` shows what the clusters say, and restores it"
        " with --write"
    )


@frozen
class _JsonNode:
    """A value that travels as a JSON object with exactly its fields (more are ignored)."""

    KIND: ClassVar[str]
    IS_RESTORED: ClassVar[bool] = False
    """Whether `failover recover` makes a garbled one anew."""

    def encode(self) -> bytes:
        """Return the JSON of a node."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes, *, topic_set: str | None = None) -> Self:
        """Return the value of a node's JSON; raises WitnessGarbled, with what to do for its set."""
        try:
            found: Any = json.loads(data)
            hints = get_type_hints(cls)
            return cls(
                **{part.name: _checked(found[part.name], hints[part.name]) for part in fields(cls)}
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            remedy = recover_remedy(topic_set) if cls.IS_RESTORED else ""
            raise WitnessGarbled(f"witness: no valid {cls.KIND}: {data[:200]!r}{remedy}") from error


LARGEST_NUMBER: Final = 2**53
"""What JSON readers of other languages keep exactly; no epoch or time comes near it."""


def _checked(value: object, kind: object) -> Any:  # noqa: ANN401 - of the type that was asked for
    """Return a JSON value that is of this type; raises TypeError."""
    if kind == Mapping[str, str]:
        is_right = isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    elif kind is int:
        is_right = type(value) is int and abs(value) < LARGEST_NUMBER
    elif kind == (str | None):
        is_right = value is None or isinstance(value, str)
    else:
        assert kind in {str, bool}, f"{kind} is no type of a node's field"
        is_right = type(value) is kind
    if not is_right:
        raise TypeError(f"{value!r:.80} is no {kind}")
    return value


@frozen
class Pair(_JsonNode):
    """Which clusters belong together: an id made at the first start, and cluster ids by site."""

    KIND: ClassVar[str] = "pair"
    IS_RESTORED: ClassVar[bool] = True
    pair: str
    clusters: Mapping[str, str]


@frozen
class ActiveSite(_JsonNode):
    """The one site that applications write to. `epoch` grows with every switch.

    `moving_to` names the next site while a planned promotion drains the present one.
    """

    KIND: ClassVar[str] = "active site"
    IS_RESTORED: ClassVar[bool] = True
    site: str
    epoch: int
    moving_to: str | None = None


@frozen
class EvidenceNumber(_JsonNode):
    """The number of the newest evidence that was written on any cluster; it only grows."""

    KIND: ClassVar[str] = "evidence number"
    IS_RESTORED: ClassVar[bool] = True
    number: int


@frozen
class WorkerInfo(_JsonNode):
    """The daemon that runs a flow: where it is and where its HTTP endpoint answers."""

    KIND: ClassVar[str] = "worker"
    host: str
    pid: int
    metrics_url: str
    started_ms: int


@frozen
class FlowCommand(_JsonNode):
    """The command that the daemon of a flow follows since promotion `epoch`."""

    KIND: ClassVar[str] = "flow command"
    epoch: int
    run: bool


@frozen
class RunningFlow(_JsonNode):
    """The settings by which a flow is run, by their keys in the configuration."""

    KIND: ClassVar[str] = "running flow"
    settings: Mapping[str, str]


@frozen
class SetTopics(_JsonNode):
    """The patterns of a named set of topics, as the file had them when the set began.

    By other patterns a topic would move to where its new set is active, without a promotion.
    """

    KIND: ClassVar[str] = "set of topics"
    topics: str


def assigned_partitions(data: bytes) -> frozenset[TopicPartition]:
    """Return the partitions that an assignment gives to anybody: all that the flow knew of.

    The rest of it is the mirror's. Raises WitnessGarbled.
    """
    try:
        found = unpack_json(data)
        return frozenset(
            TopicPartition(text(topic), whole_number(index, LARGEST_INT32))
            for topics in found["owners"].values()
            for topic, indexes in topics.items()
            for index in indexes
        ) | {
            TopicPartition(text(topic), whole_number(index, LARGEST_INT32))
            for topic, index, *_ in found["leaving"]
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WitnessGarbled(f"witness: no valid assignment: {data[:80]!r}") from error


def assigned_writers(data: bytes) -> frozenset[int]:
    """Return the producer ids by which the workers of an assignment write the map.

    The rest of it is the mirror's. Raises WitnessGarbled.
    """
    try:
        writers = unpack_json(data)["writers"].values()
        return frozenset(whole_number(producer_id) for producer_id, _ in writers)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WitnessGarbled(f"witness: no valid assignment: {data[:80]!r}") from error


@frozen
class WitnessPaths:
    """The paths below `root`: the configuration's coordination.path, or that of one set of topics.

    Some nodes are the pair's, whichever set asks. The lease is one, since both sites have one fence
    each. So are the maps' writers, since all sets of a direction share its map.
    """

    root: str
    pair_root: str | None = None
    """The configuration's coordination.path, of a named set."""
    topic_set: str | None = None
    """The set whose paths these are; None where the file has no sets, or none is meant."""

    @property
    def of_pair(self) -> "WitnessPaths":
        """Return the paths of the pair, which are those of the default set."""
        return self if self.pair_root is None else WitnessPaths(root=self.pair_root)

    @property
    def sets(self) -> str:
        """Return the parent of all named sets of topics."""
        return f"{self.of_pair.root}/sets"

    def of_set(self, name: str) -> "WitnessPaths":
        """Return the paths of a named set."""
        root = self.of_pair.root
        return WitnessPaths(root=f"{self.sets}/{name}", pair_root=root, topic_set=name)

    @property
    def pair(self) -> str:
        """Return the path of the Pair."""
        return f"{self.root}/pair"

    @property
    def patterns(self) -> str:
        """Return the path of a named set's SetTopics."""
        return f"{self.root}/patterns"

    @property
    def active(self) -> str:
        """Return the path of the ActiveSite."""
        return f"{self.root}/active"

    def read_active(self, data: bytes) -> ActiveSite:
        """Return what the node `active` says; raises WitnessGarbled, with what to do."""
        return ActiveSite.decode(data, topic_set=self.topic_set)

    @property
    def evidence_number(self) -> str:
        """Return the path of the EvidenceNumber."""
        return f"{self.root}/evidence-number"

    @property
    def lease(self) -> str:
        """Return the path of the controller's ephemeral node."""
        return f"{self.of_pair.root}/failover/lease"

    @property
    def lease_wanted(self) -> str:
        """Return the path of the ephemeral node of whoever waits to promote applications."""
        return f"{self.of_pair.root}/failover/lease-wanted"

    @property
    def hold(self) -> str:
        """Return the path of an operator's hold, which keeps promotions from beginning."""
        return f"{self.of_pair.root}/failover/hold"

    @property
    def rehearsal_lease(self) -> str:
        """Return the path of the ephemeral node of whoever runs a rehearsal."""
        return f"{self.of_pair.root}/failover/rehearsal"

    @property
    def rehearsals(self) -> str:
        """Return the parent of all rehearsals that are kept."""
        return f"{self.of_pair.root}/failover/rehearsals"

    def rehearsal(self, number: int) -> str:
        """Return the path of what is known of one rehearsal."""
        return f"{self.rehearsals}/{number:010d}"

    def vote(self, voter: str) -> str:
        """Return the path of the ephemeral vote of one `failover serve`."""
        return f"{self.of_pair.root}/failover/votes/{voter}"

    @property
    def journals(self) -> str:
        """Return the parent of all journals."""
        return f"{self.root}/failover/journal"

    def journal(self, epoch: int) -> str:
        """Return the path of one promotion's journal."""
        return f"{self.journals}/{epoch:010d}"

    @property
    def all_journal_parts(self) -> str:
        """Return the parent of the parts of all journals."""
        return f"{self.root}/failover/journal-parts"

    def journal_parts(self, epoch: int) -> str:
        """Return the parent of the parts of one promotion's journal."""
        return f"{self.all_journal_parts}/{epoch:010d}"

    def flow(self, source: str, target: str) -> str:
        """Return the parent of a flow's nodes."""
        return f"{self.root}/mirror/{source}-{target}"

    def worker(self, source: str, target: str) -> str:
        """Return the path of the ephemeral WorkerInfo of the daemon that leads a flow."""
        return f"{self.flow(source, target)}/worker"

    def workers(self, source: str, target: str) -> str:
        """Return the parent of the ephemeral nodes of all who mirror a part of a flow."""
        return f"{self.flow(source, target)}/workers"

    def assignment(self, source: str, target: str) -> str:
        """Return the path of the assignment of partitions to workers."""
        return f"{self.flow(source, target)}/assignment"

    def command(self, source: str, target: str) -> str:
        """Return the path of a flow's FlowCommand."""
        return f"{self.flow(source, target)}/command"

    def acknowledged(self, source: str, target: str) -> str:
        """Return the path of the FlowCommand that was last carried out."""
        return f"{self.flow(source, target)}/acknowledged"

    def running(self, source: str, target: str) -> str:
        """Return the path of the RunningFlow."""
        return f"{self.flow(source, target)}/running"

    def known_ends(self, source: str, target: str) -> str:
        """Return the path of the KnownEnds of a flow's source."""
        return f"{self.flow(source, target)}/known-ends"

    def known_ends_parts(self, source: str, target: str) -> str:
        """Return the parent of the parts of the KnownEnds."""
        return f"{self.flow(source, target)}/known-ends-parts"

    def map_writers(self, source: str, target: str) -> str:
        """Return the path of the producer ids that may write a flow's map."""
        return f"{self.of_pair.flow(source, target)}/map-writers"

    def checkpoint_writers(self, source: str, target: str) -> str:
        """Return the path of the producer ids that may write a flow's checkpoints."""
        return f"{self.of_pair.flow(source, target)}/checkpoint-writers"

    def making_producer(self, source: str, target: str) -> str:
        """Return the path of the leader that makes the producer by which all sets are mirrored."""
        return f"{self.of_pair.flow(source, target)}/making-producer"

    def orders(self, source: str, target: str) -> str:
        """Return the path of the orders that people have given for a flow."""
        return f"{self.flow(source, target)}/orders"

    @property
    def groups(self) -> str:
        """Return the parent of all groups whose members follow the active site."""
        return f"{self.of_pair.root}/groups"

    def group(self, group_id: str) -> str:
        """Return the parent of a group's members that follow the active site.

        A name of dots alone is quoted as well: ZooKeeper takes none of those.
        """
        quoted = quote(group_id, safe="")
        return f"{self.groups}/{quoted if quoted.strip('.') else quoted.replace('.', '%2E')}"
