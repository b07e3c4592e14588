from wire.topic_partition import TopicPartition


def test_a_partition_prints_as_kafka_names_its_folder() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"
    assert f"{TopicPartition('a-b.c_d', 0)}" == "a-b.c_d-0"


def test_a_partition_is_found_by_the_plain_tuple() -> None:
    offsets: dict[tuple[str, int], int] = {TopicPartition("orders", 3): 7}
    assert offsets[("orders", 3)] == 7
    assert TopicPartition(topic="orders", partition=3) == ("orders", 3)


def test_partitions_sort_by_topic_and_then_by_number() -> None:
    names = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)]
    assert sorted(names) == [("a", 9), ("a", 10), ("b", 0)]
