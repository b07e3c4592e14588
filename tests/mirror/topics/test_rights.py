"""Which rights are found missing."""

from mirror.topics.rights import TARGET_RIGHTS, OperationBit, lacking, told_lacking
from runtime.rights.authorized import NOT_TOLD

ALL = sum(1 << operation for operation in OperationBit)


def test_a_missing_right_is_told_with_its_topics() -> None:
    told = {"a": ALL, "b": ALL & ~(1 << OperationBit.WRITE), "c": 1 << OperationBit.DESCRIBE}
    missing = lacking(told, TARGET_RIGHTS)
    assert missing[OperationBit.WRITE] == ["b", "c"]
    assert missing[OperationBit.ALTER] == ["c"]
    assert (
        told_lacking("dc2", missing)[OperationBit.WRITE]
        == "on dc2 the right WRITE is missing for b, c"
    )


def test_where_nothing_is_told_nothing_is_missing() -> None:
    assert lacking({"a": NOT_TOLD}, TARGET_RIGHTS) == {}
