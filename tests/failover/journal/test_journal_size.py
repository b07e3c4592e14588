"""The journal of a promotion fits into nodes of a ZooKeeper, or the promotion is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.journal.facts import Facts
from failover.journal.journal import (
    Journal,
    decode_journal,
    encode_journal,
    end_step,
    split_journal,
)
from failover.journal.journal_size import OTHER_BYTES, most_bytes, why_too_long
from failover.journal.steps import PromotionKind, StepName, StepState
from failover.planning.plan import PromotionRequest, decide
from failover.planning.refusal import Refusal
from runtime.coordination.long_document import LONG_BYTES, Packer, join
from tests.failover.journals import FURTHEST, ended_promotion, fullest
from tests.failover.plans import ALL_WELL, DC1, DC2
from wire.topic_partition import TopicPartition

NODE_BYTES = 1024 * 1024
REQUEST_BYTES = 2_000
"""What a request has beside the data of its node."""


def largest_node(journal: Journal) -> int:
    """The bytes of the longest node; what is read is what was written."""
    document = split_journal(journal, Packer())
    assert decode_journal(join(document.head, document.parts)) == journal
    return max(len(document.head), *map(len, document.parts.values()))


@pytest.mark.parametrize(
    ("name_length", "partitions"),
    [
        pytest.param(249, 1, id="as many topics, of the longest names"),
        pytest.param(8, 20_000, id="one topic"),
    ],
)
def test_twenty_thousand_partitions_fit_whatever_their_names(
    name_length: int, partitions: int
) -> None:
    topics = {
        f"{number * 7919 % 10**8:0{name_length}}": partitions
        for number in range(20_000 // partitions)
    }
    assert largest_node(fullest(topics)) + REQUEST_BYTES < NODE_BYTES
    assert why_too_long(topics) is None


def fullest_of_all(topics: dict[str, int]) -> Journal:
    """A promotion that notes all it can of each partition, and of each topic."""
    appended: list[Facts] = [
        {"topic": topic, "partition": index, "start": FURTHEST, "stop": FURTHEST}
        for topic, count in topics.items()
        for index in range(count)
    ]
    facts: Facts = {"evidence": {}, "appended": appended, "made": [*topics], "committed": FURTHEST}
    return end_step(
        fullest(topics), StepName.CONFIRM, state=StepState.DONE, facts=facts, now_ms=FURTHEST
    )


names = st.text("abc._-09", min_size=1, max_size=249)


@given(st.dictionaries(names, st.integers(1, 120), max_size=8))
def test_no_journal_becomes_longer_than_was_said_beforehand(topics: dict[str, int]) -> None:
    length = len(encode_journal(fullest_of_all(topics)))
    assert length <= most_bytes(topics)
    assert most_bytes(topics) - OTHER_BYTES <= 1.3 * length, "what fits is not refused"


MANY = {f"team.service-{number}.events": 10 for number in range(30_000)}


@pytest.mark.parametrize("kind", PromotionKind)
def test_a_promotion_whose_journal_nobody_could_read_is_refused_at_its_plan(
    kind: PromotionKind,
) -> None:
    ends = {
        TopicPartition(topic, index): 100 for topic, count in MANY.items() for index in range(count)
    }
    source = replace(DC1, ends=ends)
    if kind is PromotionKind.SOURCE_LOST:
        source = replace(DC1, ends={}, fault="no answer within 3 s")
    seen = replace(ALL_WELL, source=source, target=replace(DC2, ends=ends), mirrored=ends)
    decision = decide(seen, PromotionRequest(site="dc2", kind=kind, force=True))
    assert isinstance(decision, Refusal)
    assert decision.reason.startswith("300000 partitions of 30000 topics make a journal of up to 1")
    assert "MB, and 64 MB can be read: share the topics among two files" in decision.reason


def test_facts_that_all_just_stay_in_the_head_fit_a_node() -> None:
    text = "x" * (LONG_BYTES - 2)
    full: dict[StepName, Facts] = {
        step: {"a": text, "b": text, "c": text} for step in fullest({"t": 1}).step_states
    }
    journal = ended_promotion(PromotionKind.PLANNED, full)
    document = split_journal(journal, Packer())
    assert document.parts == {}
    assert len(document.head) + REQUEST_BYTES < NODE_BYTES
