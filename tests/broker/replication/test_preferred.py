"""Which replica a consumer is sent to (KIP-392)."""

from broker.replication.preferred import Readable, select_by_rack


def test_the_replica_of_the_consumers_rack_that_is_farthest_is_chosen() -> None:
    replicas = [
        Readable(1, "a", 100, 5),
        Readable(2, "b", 90, 9),
        Readable(3, "b", 95, 1),
        Readable(4, "b", 95, 2),
    ]
    assert select_by_rack(replicas, "b") == 4
    assert select_by_rack(replicas, "a") == 1


def test_without_a_replica_in_the_rack_the_leader_serves() -> None:
    assert select_by_rack([Readable(1, "a", 100, 5), Readable(2, None, 90, 9)], "c") is None
