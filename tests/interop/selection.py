"""What `make interop-quick` runs: every kind of peer once, in less than ten minutes. Pure."""

from collections.abc import Mapping
from typing import Final

from tests.interop.peers import KAFKA_3_KRAFT, KAFKA_4_KRAFT
from tests.interop.sites import Pair

QUICK_FILES: Final = frozenset(
    {
        "test_bundled_broker_clients.py",
        "test_consumer_offsets.py",
        "test_data_folders.py",
        "test_differences.py",
        "test_every_version.py",
        "test_judgement.py",
        "test_peers.py",
        "test_wire_net.py",
        "test_witness_ensemble.py",
    }
)
QUICK_PAIR: Final = Pair(source=KAFKA_3_KRAFT, target=KAFKA_4_KRAFT)
QUICK_CASES: Final[Mapping[str, frozenset[str]]] = {
    "test_mirror.py": frozenset(
        {
            "test_batches_of_every_codec_pass_byte_for_byte",
            "test_committed_transactions_pass_and_positions_in_their_holes_are_exact",
        }
    ),
    "test_flow_start.py": frozenset(
        {"test_a_kill_behind_the_begin_neither_skips_nor_brings_what_was_before"}
    ),
    "test_failover.py": frozenset({"test_a_promotion_after_the_source_was_lost_takes_place"}),
}
"""Of these files only these tests, between the one pair of clusters."""


def is_quick(file: str, test: str, parameters: Mapping[str, object]) -> bool:
    """Tell whether a test belongs to the quick selection."""
    if file in QUICK_FILES:
        return True
    return test in QUICK_CASES.get(file, ()) and parameters.get("sites") == QUICK_PAIR
