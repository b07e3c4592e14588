"""Which rights are found missing."""

from mirror.topics.rights import NOT_TOLD, TARGET_RIGHTS, Operation, lacking, told_lacking

ALL = sum(1 << operation for operation in Operation)


def test_a_missing_right_is_told_with_its_topics() -> None:
    told = {"a": ALL, "b": ALL & ~(1 << Operation.WRITE), "c": 1 << Operation.DESCRIBE}
    missing = lacking(told, TARGET_RIGHTS)
    assert missing[Operation.WRITE] == ["b", "c"]
    assert missing[Operation.ALTER] == ["c"]
    assert (
        told_lacking("dc2", missing)[Operation.WRITE]
        == "on dc2 the right WRITE is missing for b, c"
    )


def test_where_nothing_is_told_nothing_is_missing() -> None:
    assert lacking({"a": NOT_TOLD}, TARGET_RIGHTS) == {}
