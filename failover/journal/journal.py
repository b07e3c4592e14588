"""The journal of one promotion: a JSON document in the witness, written before and after each step.

It lies at `<coordination.path>/failover/journal/<epoch, ten digits>` and is plain JSON (UTF-8), so
that the audit, an operator and another version of this program can read it. Those that nobody needs
any more are deleted (`failover.journal.journals`).

    {
      "epoch": 3,                    the epoch the promotion establishes; grows with every attempt
      "site": "dc2",                 the site that becomes active
      "source": "dc1",               the site that was active
      "kind": "planned",             or "source-lost"
      "state": "running",            or "done" or "rolled-back"
      "direction": "forward",        or "back" while it is being rolled back
      "reason": null,                why it is rolled back: one line
      "started_ms": 1763620000000,   wall clock of the first controller, at the start of its command
      "switched_ms": null,           wall clock right after the switch; the difference is the RTO
      "partitions": [                filled by the step "seal", ordered by topic and partition
        {"topic": "orders", "partition": 0,
         "mirrored_source_end": 1042,    first source offset that was not mirrored
         "target_end": 1040,             the seal: target offsets below it are the mirrored part
         "source_end": 1042}             source log end behind the fence; null when it was lost
      ],
      "steps": [                     in the order they were begun
        {"name": "fence", "state": "done", "started_ms": 0, "ended_ms": 0, "facts": {}}
      ]
    }

`facts` differ by step. Some decide later steps
(`failover.journal.facts`); all others are for people: offsets, groups, counts.

`partitions` and facts that are long lie in nodes of their own, below
`<coordination.path>/failover/journal-parts/<epoch>` (`runtime.coordination.long_document`). What
would be longer than anybody reads is refused beforehand (`failover.journal.journal_size`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from failover.journal.commands_given import GivenCommand, kept
from failover.journal.facts import (
    DrainFacts,
    Facts,
    FactsMalformed,
    FenceFacts,
    GroupFacts,
    PreflightFacts,
    SealFacts,
)
from failover.journal.steps import (
    ORDER,
    UNDOABLE,
    Direction,
    PromotionKind,
    PromotionState,
    StepName,
    StepState,
    may_move,
)
from runtime.coordination.long_document import (
    Address,
    LongDocument,
    Packed,
    Packer,
    assemble,
    compact,
)
from runtime.untrusted_json import LARGEST_INT32, read_json, text, whole_number
from wire.topic_partition import TopicPartition
from wire.values import frozen

ELSEWHERE: Final = "in parts"
"""The partitions in a head whose partitions lie in parts."""

DECISIVE: Final[Mapping[StepName, Callable[[Facts], object]]] = {
    StepName.PREFLIGHT: PreflightFacts.decode,
    StepName.FENCE: FenceFacts.decode,
    StepName.DRAIN: DrainFacts.decode,
    StepName.SEAL: SealFacts.decode,
    StepName.GROUPS_MOVE: GroupFacts.decode,
    StepName.VERIFY_FENCE: GroupFacts.decode,
}
"""The steps whose facts decide later steps, and what reads those facts."""


class JournalUnreadable(ValueError):
    """The document is not a journal that this program understands; says what is wrong with it."""


@frozen
class PartitionEnds:
    """Where one partition stood at the switch. Offsets are exclusive ends."""

    topic: str
    partition: int
    mirrored_source_end: int
    target_end: int
    source_end: int | None


@frozen
class StepRecord:
    """One step as the journal knows it. Times are wall-clock milliseconds."""

    name: StepName
    state: StepState
    started_ms: int
    ended_ms: int | None
    facts: Facts


@frozen
class Journal:
    """Everything a controller needs in order to go on with a promotion it did not begin."""

    epoch: int
    site: str
    source: str
    kind: PromotionKind
    state: PromotionState = PromotionState.RUNNING
    direction: Direction = Direction.FORWARD
    reason: str | None = None
    started_ms: int
    switched_ms: int | None = None
    partitions: tuple[PartitionEnds, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    given: tuple[GivenCommand, ...] = ()
    """Who gave which command; none in a journal of an earlier version."""

    @property
    def step_states(self) -> Mapping[StepName, StepState]:
        """The state of every step that has a record."""
        return {record.name: record.state for record in self.steps}

    @property
    def rto_ms(self) -> int | None:
        """Milliseconds from the start of the command to the switch; None before it."""
        return None if self.switched_ms is None else self.switched_ms - self.started_ms

    def record(self, step: StepName) -> StepRecord | None:
        """Return this step's record, or None if it was never begun."""
        return next((record for record in self.steps if record.name is step), None)

    def facts(self, step: StepName) -> Facts:
        """Return what this step has found out; empty if it was never begun."""
        record = self.record(step)
        return {} if record is None else record.facts

    @property
    def preflight(self) -> PreflightFacts:
        """What the preflight has found out; raises FactsMalformed."""
        return PreflightFacts.decode(self.facts(StepName.PREFLIGHT))

    @property
    def fence(self) -> FenceFacts:
        """What the fence has closed; raises FactsMalformed."""
        return FenceFacts.decode(self.facts(StepName.FENCE))

    @property
    def drain(self) -> DrainFacts:
        """Where the source's logs were when the drain began; raises FactsMalformed."""
        return DrainFacts.decode(self.facts(StepName.DRAIN))

    @property
    def sealed_ids(self) -> Mapping[str, UUID]:
        """The ids of the topics that were sealed, where they are known; raises FactsMalformed."""
        topics = sorted({one.topic for one in self.partitions})
        ids = SealFacts.decode(self.facts(StepName.SEAL)).source_ids
        if ids and len(ids) != len(topics):
            raise FactsMalformed(f"source_ids are {len(ids)} of {len(topics)} topics")
        return {topic: one for topic, one in zip(topics, ids, strict=False) if one.int}

    @property
    def moved_groups(self) -> Facts:
        """What the last move of groups before the switch has found out; empty before the first."""
        looked = self.facts(StepName.VERIFY_FENCE)
        return looked if "positions" in looked else self.facts(StepName.GROUPS_MOVE)

    @property
    def moving(self) -> tuple[TopicPartition, ...]:
        """The partitions that move, in order; raises JournalUnreadable before the preflight.

        A planned promotion moves what the fence has closed, and before the fence what the preflight
        has found on the source. When the source is lost, only what the target has moves.
        """
        topics = self.preflight.topics
        if self.kind is PromotionKind.PLANNED and self.fence.topics is not None:
            topics = self.fence.topics
        if topics is None:
            raise JournalUnreadable(f"step {StepName.PREFLIGHT} does not say which topics move")
        return tuple(
            TopicPartition(topic, partition)
            for topic, count in sorted(topics.items())
            for partition in range(count)
        )


def begin_step(journal: Journal, step: StepName, now_ms: int) -> Journal:
    """Record that a step is about to act; a step found started keeps its first start and facts.

    It is the last one then, also where it comes from a promotion that this one replaces.
    """
    found = journal.record(step)
    if found is not None:
        others = tuple(record for record in journal.steps if record.name is not step)
        journal = replace(journal, steps=(*others, found))
        return _put(journal, replace(found, state=StepState.STARTED))
    record = StepRecord(
        name=step, state=StepState.STARTED, started_ms=now_ms, ended_ms=None, facts={}
    )
    return _put(journal, record)


def end_step(
    journal: Journal, step: StepName, *, state: StepState, facts: Facts, now_ms: int
) -> Journal:
    """Record how a step ended; facts are added to those it had already noted.

    What an earlier attempt to take it back has left is no more when it is taken back.
    """
    found = journal.record(step)
    assert found is not None, f"step {step} ends but has not begun"
    is_undone = state is StepState.UNDONE
    known = {key: one for key, one in found.facts.items() if not (is_undone and key == "left")}
    return _put(journal, replace(found, state=state, ended_ms=now_ms, facts={**known, **facts}))


def note_facts(journal: Journal, step: StepName, facts: Facts) -> Journal:
    """Record what a step has found out before it acts on it; the step goes on."""
    found = journal.record(step)
    assert found is not None, f"step {step} has not begun"
    return _put(journal, replace(found, facts={**found.facts, **facts}))


def note_command(journal: Journal, given: GivenCommand) -> Journal:
    """Record who has given a command to the promotion."""
    return replace(journal, given=kept(journal.given, given))


def mark_stale(journal: Journal, steps: Iterable[StepName]) -> Journal:
    """Record that these steps are to be done again; what they have noted stays until then."""
    for step in steps:
        found = journal.record(step)
        assert found is not None, f"step {step} has not begun"
        if found.state is not StepState.STALE:
            journal = _put(journal, replace(found, state=StepState.STALE))
    return journal


def turn_back(journal: Journal, reason: str) -> Journal:
    """Decide that the promotion is rolled back. The first reason is the one that stays."""
    return replace(journal, direction=Direction.BACK, reason=journal.reason or reason)


def taken_on(replaced: Journal, kind: PromotionKind) -> tuple[StepRecord, ...]:
    """Return the records with which a promotion begins that replaces another one of its site.

    A step that the replaced one has begun and not taken back counts as begun: it is done again, or
    taken back.
    """
    wanted = [step for step in ORDER[kind] if step in UNDOABLE or step is StepName.PREFLIGHT]
    records = [record for record in map(replaced.record, wanted) if record is not None]
    return tuple(
        replace(
            record,
            state=StepState.STARTED,
            ended_ms=None,
            facts=record.facts if record.name is StepName.PREFLIGHT else {},
        )
        for record in records
        if record.state is not StepState.UNDONE
    )


def _put(journal: Journal, record: StepRecord) -> Journal:
    found = journal.record(record.name)
    assert (found is not None and found.state is record.state) or may_move(
        None if found is None else found.state, record.state
    ), f"step {record.name} may not go to {record.state}"
    if found is None:
        return replace(journal, steps=(*journal.steps, record))
    steps = tuple(record if old.name is record.name else old for old in journal.steps)
    return replace(journal, steps=steps)


def encode_journal(journal: Journal) -> bytes:
    """Return the whole document, however long it is."""
    partitions = _plain_partitions(journal)
    return compact(_document(journal, partitions, [record.facts for record in journal.steps]))


def split_journal(journal: Journal, packer: Packer) -> LongDocument:
    """Return the document as it is stored: its head fits a node, whatever it says of partitions."""
    long: dict[Address, Packed] = {}
    ends = packer.pack(journal.partitions, lambda: _plain_partitions(journal))
    if ends is not None:
        long["partitions",] = ends
    facts: list[Facts] = []
    for number, record in enumerate(journal.steps):
        packed = {key: packer.pack(value) for key, value in record.facts.items()}
        long |= {
            ("steps", number, "facts", key): one for key, one in packed.items() if one is not None
        }
        facts.append({key: value for key, value in record.facts.items() if packed[key] is None})
    packer.forget_unused()
    # No list: a reader that does not know of parts must not take it for a journal without seals.
    partitions = _plain_partitions(journal) if ends is None else ELSEWHERE
    return assemble(_document(journal, partitions, facts), long)


def _plain_partitions(journal: Journal) -> list[Mapping[str, object]]:
    return [
        {
            "topic": ends.topic,
            "partition": ends.partition,
            "mirrored_source_end": ends.mirrored_source_end,
            "target_end": ends.target_end,
            "source_end": ends.source_end,
        }
        for ends in journal.partitions
    ]


def _document(
    journal: Journal, partitions: Sequence[Mapping[str, object]] | str, facts: Sequence[Facts]
) -> Mapping[str, object]:
    """Return the document with these partitions, and these facts of its steps."""
    return {
        "epoch": journal.epoch,
        "site": journal.site,
        "source": journal.source,
        "kind": journal.kind.value,
        "state": journal.state.value,
        "direction": journal.direction.value,
        "reason": journal.reason,
        "started_ms": journal.started_ms,
        "switched_ms": journal.switched_ms,
        "partitions": partitions,
        "steps": [
            {
                "name": record.name.value,
                "state": record.state.value,
                "started_ms": record.started_ms,
                "ended_ms": record.ended_ms,
                "facts": known,
            }
            for record, known in zip(journal.steps, facts, strict=True)
        ],
        "given": [given.document() for given in journal.given],
    }


def decode_journal(data: bytes) -> Journal:
    """Return the journal a document holds.

    Raises JournalUnreadable when it is no JSON, lacks a key, names a step or state that this
    version does not know, or when a fact that decides something is malformed: going on without
    understanding it could do harm.
    """
    try:
        document = read_json(data)
        journal = _from_document(document)
        _check_facts(journal)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JournalUnreadable(f"{type(error).__name__}: {error}") from error
    return journal


def _check_facts(journal: Journal) -> None:
    """Raise FactsMalformed, naming step and key, for facts that decide something."""
    for step, decode in DECISIVE.items():
        try:
            decode(journal.facts(step))
        except FactsMalformed as error:
            raise FactsMalformed(f"step {step}: {error}") from error


def _from_document(document: Mapping[str, Any]) -> Journal:
    return Journal(
        epoch=whole_number(document["epoch"]),
        site=text(document["site"]),
        source=text(document["source"]),
        kind=PromotionKind(document["kind"]),
        state=PromotionState(document["state"]),
        direction=Direction(document["direction"]),
        reason=None if document["reason"] is None else text(document["reason"]),
        started_ms=whole_number(document["started_ms"]),
        switched_ms=_number_or_none(document["switched_ms"]),
        partitions=tuple(
            PartitionEnds(
                topic=text(ends["topic"]),
                partition=whole_number(ends["partition"], LARGEST_INT32),
                mirrored_source_end=whole_number(ends["mirrored_source_end"]),
                target_end=whole_number(ends["target_end"]),
                source_end=_number_or_none(ends["source_end"]),
            )
            for ends in document["partitions"]
        ),
        steps=tuple(
            StepRecord(
                name=StepName(step["name"]),
                state=StepState(step["state"]),
                started_ms=whole_number(step["started_ms"]),
                ended_ms=_number_or_none(step["ended_ms"]),
                facts=dict(step["facts"]),
            )
            for step in document["steps"]
        ),
        given=tuple(GivenCommand.of_document(given) for given in document.get("given", ())),
    )


def _number_or_none(value: object) -> int | None:
    return None if value is None else whole_number(value)
