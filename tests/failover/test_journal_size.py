"""A promotion may move any number of partitions: its journal fits into nodes of a ZooKeeper."""

import pytest

from failover.facts import Facts
from failover.journal import Journal, decode_journal, split_journal
from failover.steps import PromotionKind, StepName
from runtime.long_document import LONG_BYTES, Packer, join
from tests.failover.journals import ended_promotion, fullest

NODE_BYTES = 1024 * 1024
REQUEST_BYTES = 2_000
"""What a request has beside the data of its node."""


def largest_node(journal: Journal) -> int:
    """The bytes of the longest node; what is read is what was written."""
    document = split_journal(journal, Packer())
    assert decode_journal(join(document.head, document.parts)) == journal
    return max(len(document.head), *map(len, document.parts.values()))


@pytest.mark.parametrize("name_length", [8, 249])
@pytest.mark.parametrize("partitions", [1, 20_000])
def test_twenty_thousand_partitions_fit_whatever_their_names(
    name_length: int, partitions: int
) -> None:
    topics = {
        f"{number * 7919 % 10**8:0{name_length}}": partitions
        for number in range(20_000 // partitions)
    }
    assert largest_node(fullest(topics)) + REQUEST_BYTES < NODE_BYTES


def test_facts_that_all_just_stay_in_the_head_fit_a_node() -> None:
    text = "x" * (LONG_BYTES - 2)
    full: dict[StepName, Facts] = {
        step: {"a": text, "b": text, "c": text} for step in fullest({"t": 1}).step_states
    }
    journal = ended_promotion(PromotionKind.PLANNED, full)
    document = split_journal(journal, Packer())
    assert document.parts == {}
    assert len(document.head) + REQUEST_BYTES < NODE_BYTES
