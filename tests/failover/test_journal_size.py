"""What a promotion writes into its journal is never more than was allowed for at its beginning."""

import pytest

from failover.facts import Facts, JsonValue
from failover.groups import GROUPS_BYTES
from failover.journal import Journal, PartitionEnds, begin_step, encode_journal, end_step
from failover.plan import JOURNAL_BYTES, journal_bytes
from failover.steps import ORDER, PromotionKind, StepName, StepState
from wire.topic_partition import TopicPartition

FURTHEST = 2**63 - 1
NODE_BYTES = 1024 * 1024
STEPS_BYTES = 5_000


def fullest(topics: dict[str, int]) -> Journal:
    """A promotion of these topics that has ended, all of them fenced on the target before."""
    journal = Journal(
        epoch=1,
        site="dc2",
        source="dc1",
        kind=PromotionKind.PLANNED,
        started_ms=0,
        partitions=tuple(
            PartitionEnds(
                topic=topic,
                partition=index,
                mirrored_source_end=FURTHEST,
                target_end=FURTHEST,
                source_end=FURTHEST,
            )
            for topic, count in topics.items()
            for index in range(count)
        ),
    )
    logs: JsonValue = {
        topic: {str(index): FURTHEST for index in range(count)} for topic, count in topics.items()
    }
    facts: dict[StepName, Facts] = {
        StepName.PREFLIGHT: {"topics": topics, "fence": [*topics]},
        StepName.FENCE: {"fenced": True, "partitions": FURTHEST, "topics": topics},
        StepName.DRAIN: {"records": FURTHEST, "starts": logs, "ends": logs},
        StepName.OPEN_TARGET: {"was_fenced": [*topics]},
    }
    for step in ORDER[PromotionKind.PLANNED]:
        journal = begin_step(journal, step, FURTHEST)
        journal = end_step(
            journal, step, state=StepState.DONE, facts=facts.get(step, {}), now_ms=FURTHEST
        )
    return journal


@pytest.mark.parametrize("name_length", [1, 30, 249])
@pytest.mark.parametrize("partitions", [1, 3, 200])
def test_the_partitions_take_no_more_than_was_reckoned(name_length: int, partitions: int) -> None:
    topics = {f"{number:0{name_length}}": partitions for number in range(300)}
    everything = [
        TopicPartition(topic, index) for topic, count in topics.items() for index in range(count)
    ]
    assert len(encode_journal(fullest(topics))) <= journal_bytes(everything) + STEPS_BYTES


def test_what_is_allowed_for_fits_into_a_node() -> None:
    assert JOURNAL_BYTES + GROUPS_BYTES + STEPS_BYTES < NODE_BYTES
