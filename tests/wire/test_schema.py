"""The codec itself, on small messages made for the purpose."""

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

import pytest

from wire.primitives import MalformedMessage
from wire.schema import (
    NEVER_FLEXIBLE,
    TooManyElements,
    Unencodable,
    UnsupportedVersion,
    boolean,
    decode,
    decode_prefix,
    encode,
    encode_parts,
    int16,
    int32,
    nullable_since,
    nullable_string,
    records_,
    since,
    string,
    tagged,
    until,
    uuid,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    name: string
    replicas: tuple[int32, ...]
    rack: nullable_string = since(1, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 3

    error_code: int16
    old: int32 = until(0, default=-1, ignorable=True)
    leaves: tuple[Leaf, ...] | None = nullable_since(1, default=())
    is_internal: boolean = since(2, default=False)
    hint: int32 = since(2, until=3, default=7, ignorable=True)
    label: nullable_string = tagged(1, since=3, default=None)
    extra: Leaf = tagged(0, since=4, default=Leaf(name="", replicas=()), ignorable=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Optional:
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = NEVER_FLEXIBLE

    leaf: Leaf | None
    id: uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 1

    before: int16
    records: records_
    after: int16 = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Strict:
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = NEVER_FLEXIBLE

    records: records_ = nullable_since(1, default=b"")
    leaves: tuple[Leaf | None, ...] = ()


def test_fields_travel_in_the_order_they_are_written() -> None:
    tree = Tree(error_code=1, leaves=(Leaf(name="ab", replicas=(5, 6)),))

    assert encode(tree, 0).hex(" ") == (
        "00 01 ff ff ff ff 00 00 00 01 00 02 61 62 00 00 00 02 00 00 00 05 00 00 00 06"
    )


def test_a_flexible_version_is_compact_and_ends_structures_with_tagged_fields() -> None:
    tree = Tree(error_code=1, leaves=(Leaf(name="ab", replicas=(5,)),), label="x")

    assert encode(tree, 3).hex(" ") == (
        "00 01 02 03 61 62 02 00 00 00 05 00 00 00 00 00 00 07 01 01 02 02 78"
    )


def test_a_tagged_field_that_holds_its_default_is_not_sent() -> None:
    assert encode(Tree(error_code=0, leaves=None), 4).hex(" ") == "00 00 00 00 00"


def test_a_field_outside_its_versions_decodes_as_its_default() -> None:
    tree = Tree(error_code=1, leaves=(), is_internal=True)

    assert decode(Tree, encode(tree, 2), 2) == tree
    assert decode(Tree, encode(Tree(error_code=1, old=9), 0), 0).old == 9
    assert decode(Tree, encode(Tree(error_code=1, old=9), 1), 1).old == -1


def test_an_ignorable_value_is_dropped_where_there_is_no_field_for_it() -> None:
    assert encode(Tree(error_code=1, hint=99), 1) == encode(Tree(error_code=1), 1)


def test_any_other_value_is_refused_where_there_is_no_field_for_it() -> None:
    with pytest.raises(Unencodable, match=r"Tree\.is_internal: version 1 has no such field"):
        encode(Tree(error_code=1, is_internal=True), 1)
    with pytest.raises(Unencodable, match=r"Leaf\.rack: version 0 has no such field for 'r'"):
        encode(Tree(error_code=1, leaves=(Leaf(name="", replicas=(), rack="r"),)), 0)


def test_null_is_refused_in_versions_that_do_not_know_it() -> None:
    assert decode(Tree, encode(Tree(error_code=1, leaves=None), 1), 1).leaves is None
    with pytest.raises(Unencodable, match=r"Tree\.leaves"):
        encode(Tree(error_code=1, leaves=None), 0)
    with pytest.raises(MalformedMessage, match=r"Tree\.leaves: null where null is not allowed"):
        decode(Tree, bytes.fromhex("0001 ffffffff ffffffff"), 0)


@pytest.mark.parametrize("leaf", [None, Leaf(name="a", replicas=())])
def test_a_structure_may_be_null(leaf: Leaf | None) -> None:
    message = Optional(leaf=leaf, id=UUID(int=3))

    raw = encode(message, 0)

    assert raw[0] == (0xFF if leaf is None else 1)
    assert decode_prefix(Optional, raw, 0) == (message, len(raw))


def test_an_unknown_tagged_field_is_stepped_over() -> None:
    raw = bytes.fromhex("0000 00 00 00000007 02 01 02 0278 63 03 aabbcc")

    assert decode_prefix(Tree, raw, 3) == (Tree(error_code=0, leaves=None, label="x"), len(raw))


def test_a_tagged_field_must_fill_its_size() -> None:
    raw = bytes.fromhex("0000 00 00 00000007 01 01 03 0278 00")

    with pytest.raises(MalformedMessage, match=r"Tree\.label: 3 bytes hold a value of 2"):
        decode(Tree, raw, 3)


def test_a_tagged_field_cannot_read_beyond_its_size() -> None:
    raw = bytes.fromhex("0000 00 00 00000007 01 01 01 0278")

    with pytest.raises(MalformedMessage, match=r"Tree\.label: needs 1 bytes, 0 are left"):
        decode(Tree, raw, 3)


def test_a_count_is_not_believed_beyond_what_the_rest_could_hold() -> None:
    raw = bytes.fromhex("0000 ffffffff 7fffffff 0000")

    with pytest.raises(MalformedMessage, match=r"Tree\.leaves: 2147483647 elements in 2 bytes"):
        decode(Tree, raw, 0)


def test_a_fault_names_class_field_and_position() -> None:
    raw = encode(Tree(error_code=1, leaves=(Leaf(name="ab", replicas=(5,)),)), 0)

    with pytest.raises(MalformedMessage) as caught:
        decode(Tree, raw[:-1], 0)

    assert str(caught.value) == "Leaf.replicas: 1 elements in 3 bytes at byte 14"


def test_a_fault_in_a_run_of_numbers_names_the_one_that_is_cut() -> None:
    with pytest.raises(MalformedMessage, match=r"Tree\.old: needs 4 bytes, 3 are left at byte 2"):
        decode(Tree, bytes(5), 0)


def test_bytes_behind_a_message_are_ignored() -> None:
    raw = encode(Tree(error_code=1), 0)

    assert decode(Tree, raw + b"more", 0) == Tree(error_code=1)


@pytest.mark.parametrize("version", [-1, 5])
def test_a_version_outside_the_range_is_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersion, match=r"Tree has no version .*, only 0 to 4"):
        encode(Tree(error_code=1), version)
    with pytest.raises(UnsupportedVersion):
        decode(Tree, b"", version)


@pytest.mark.parametrize(
    ("tree", "named"),
    [
        (Tree(error_code=2**15), r"error_code=32768"),
        (Tree(error_code=0, is_internal=True, hint=2**31), r"is_internal=True, hint=2147483648"),
        (Tree(error_code=0, leaves=(Leaf(name=None, replicas=()),)), r"Leaf\.name"),  # type: ignore[arg-type]
        (Tree(error_code=0, leaves=(Leaf(name="", replicas=(2**31,)),)), r"Leaf\.replicas"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_name(tree: Tree, named: str) -> None:
    with pytest.raises(Unencodable, match=named):
        encode(tree, 2)


@pytest.mark.parametrize("version", [0, 1])
def test_records_decode_as_a_view_into_the_buffer(version: int) -> None:
    raw = bytearray(encode(Carrier(before=1, records=b"batch", after=2), version))

    carrier = decode(Carrier, raw, version)
    raw[raw.index(b"batch")] = ord("B")

    assert isinstance(carrier.records, memoryview)
    assert bytes(carrier.records) == b"Batch"


@pytest.mark.parametrize("version", [0, 1])
def test_records_are_encoded_without_a_copy(version: int) -> None:
    header, payload = bytearray(b"header"), memoryview(bytearray(b"payload"))

    parts = encode_parts(Carrier(before=1, records=(header, payload), after=2), version)
    payload[0] = ord("P")

    assert [isinstance(part, memoryview) for part in parts] == [False, True, True, False]
    assert b"".join(parts) == encode(Carrier(before=1, records=b"headerPayload", after=2), version)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("records", [None, b"", memoryview(b"")])
def test_records_may_be_null_or_empty(version: int, records: bytes | memoryview | None) -> None:
    message = Carrier(before=1, records=records)

    assert decode(Carrier, b"".join(encode_parts(message, version)), version) == message


def test_null_records_are_refused_in_versions_that_do_not_know_them() -> None:
    assert decode(Strict, encode(Strict(records=None), 1), 1).records is None
    with pytest.raises(Unencodable, match=r"Strict\.records"):
        encode(Strict(records=None), 0)
    with pytest.raises(MalformedMessage, match=r"Strict\.records: null"):
        decode(Strict, bytes.fromhex("ffffffff 00000000"), 0)


def test_structures_in_an_array_may_be_null() -> None:
    message = Strict(records=b"", leaves=(None, Leaf(name="a", replicas=(1,)), None))

    raw = encode(message, 1)

    assert raw.startswith(bytes.fromhex("00000000 00000003 ff 01"))
    assert decode_prefix(Strict, raw, 1) == (message, len(raw))


def test_the_elements_of_all_arrays_together_are_limited() -> None:
    tree = Tree(error_code=0, leaves=tuple(Leaf(name="x", replicas=()) for _ in range(3)))
    raw = encode(tree, 0)

    assert decode_prefix(Tree, raw, 0, most_elements=2) == (tree, len(raw))
    with pytest.raises(TooManyElements, match="Tree: more elements than the limit of 1"):
        decode_prefix(Tree, raw, 0, most_elements=1)
    assert decode(Tree, raw, 0) == tree  # whoever sets no limit has none


def test_sixteen_plain_numbers_count_as_one_element() -> None:
    leaves = tuple(Leaf(name="x", replicas=tuple(range(33))) for _ in range(2))
    raw = encode(Tree(error_code=0, leaves=leaves), 0)

    decode_prefix(Tree, raw, 0, most_elements=5)
    with pytest.raises(TooManyElements):
        decode_prefix(Tree, raw, 0, most_elements=4)


def test_tagged_fields_count_as_elements() -> None:
    raw = bytes.fromhex("0000 00 00 00000007 02 01 02 0278 63 03 aabbcc")

    decode_prefix(Tree, raw, 3, most_elements=2)
    with pytest.raises(TooManyElements):
        decode_prefix(Tree, raw, 3, most_elements=1)
