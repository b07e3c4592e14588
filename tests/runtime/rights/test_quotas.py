"""Client quotas: what the target lacks is set, what somebody set there stays."""

from runtime.rights.quotas import QuotasGiven, differing_quotas
from wire.net.client_quotas import Quotas

ALICE = frozenset({("user", "alice")})
OTHERS = frozenset({("user", None), ("client-id", "etl")})


def produce(rate: float) -> dict[str, float]:
    return {"producer_byte_rate": rate}


def test_a_quota_that_the_target_lacks_is_due_and_one_of_the_targets_own_stays() -> None:
    source: Quotas = {ALICE: produce(1) | {"consumer_byte_rate": 2}, OTHERS: produce(3)}
    assert QuotasGiven().due(source, {ALICE: produce(9)}) == {
        ALICE: {"consumer_byte_rate": 2},
        OTHERS: produce(3),
    }


def test_a_change_on_the_source_follows_where_both_sites_were_alike_before() -> None:
    given = QuotasGiven()
    assert not given.due({ALICE: produce(1)}, {ALICE: produce(1)})
    assert given.due({ALICE: produce(2)}, {ALICE: produce(1)}) == {ALICE: produce(2)}
    assert not given.due({ALICE: produce(3)}, {ALICE: produce(7)})


def test_nothing_is_removed_and_addresses_are_each_sites_own() -> None:
    address = frozenset({("ip", "10.0.0.1")})
    given = QuotasGiven()
    assert not given.due({ALICE: produce(1)}, {ALICE: produce(1)})
    assert not given.due({address: {"connection_creation_rate": 5}}, {ALICE: produce(1)})


def test_differences_are_told_in_words() -> None:
    source: Quotas = {ALICE: produce(1), OTHERS: produce(3)}
    assert differing_quotas(source, {OTHERS: produce(3.5)}) == [
        "producer_byte_rate of every other user, client-id etl: 3 on the source, 3.5 on the target",
        "producer_byte_rate of user alice: 1 on the source, none on the target",
    ]
