"""Documents longer than a node: what is put together again is what was taken apart, or an error."""

import hashlib
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.coordination import long_document
from runtime.coordination.long_document import (
    DIGEST_LENGTH,
    LONG_BYTES,
    PART_BYTES,
    Address,
    LongDocument,
    Packed,
    Packer,
    PartMissing,
    assemble,
    compact,
    join,
    pack,
    references,
)

plain = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2**63 - 1) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


def stored(document: dict[str, Any]) -> LongDocument:
    """A document whose values, and the facts of whose steps, are taken out where they are long."""
    packer = Packer()
    long: dict[Address, Packed] = {}
    for key, value in document.items():
        packed = packer.pack(value)
        if packed is not None:
            long[key,] = packed
    short = {key: value for key, value in document.items() if (key,) not in long}
    return assemble(short, long)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_document, "PART_BYTES", 7)
    monkeypatch.setattr(long_document, "LONG_BYTES", 10)
    monkeypatch.setattr(long_document, "MAX_PARTS", 10_000)


@pytest.mark.usefixtures("small_parts")
@given(st.dictionaries(st.text().filter(lambda key: key != "long"), plain, max_size=6))
def test_a_document_survives_its_parts(document: dict[str, Any]) -> None:
    found = stored(document)
    assert all(len(part) <= 7 for part in found.parts.values())
    assert json.loads(join(found.head, found.parts)) == document


@pytest.mark.usefixtures("small_parts")
@given(st.lists(st.text(min_size=8), min_size=1, max_size=3), st.data())
def test_parts_that_are_missing_or_others_are_an_error(values: list[str], data: Any) -> None:
    found = stored({str(number): value for number, value in enumerate(values)})
    if not found.parts:
        return
    name = data.draw(st.sampled_from(sorted(found.parts)))
    without = {other: part for other, part in found.parts.items() if other != name}
    with pytest.raises(PartMissing, match=name):
        join(found.head, without)
    with pytest.raises(ValueError, match="are not what was written"):
        join(found.head, {**found.parts, name: found.parts[name] + b"x"})


def test_a_short_document_is_one_node_that_everybody_can_read() -> None:
    found = stored({"a": 1, "b": "x" * (LONG_BYTES - 2)})
    assert found.parts == {}
    assert json.loads(found.head) == {"a": 1, "b": "x" * (LONG_BYTES - 2)}
    assert join(found.head, {}) == found.head


def test_a_value_is_packed_once_for_as_long_as_it_is_used() -> None:
    packer, value, other = Packer(), list(range(10_000)), list(range(9_000))
    first = packer.pack(value)
    assert first is not None
    packer.forget_unused()
    assert packer.pack(value) is first
    packer.forget_unused()
    packer.pack(other)
    packer.forget_unused()
    again = packer.pack(value)
    assert again is not first
    assert again == first


def test_a_part_fits_a_node_whatever_the_value_is() -> None:
    packed = pack([str(number**9) for number in range(100_000)])
    assert packed is not None
    assert len(packed.parts) > 1
    assert max(map(len, packed.parts)) == PART_BYTES


GOOD = {"at": ["a"], "digest": "0" * 32, "parts": 1}


@pytest.mark.parametrize(
    "named",
    [
        5,
        [5],
        [{}],
        [GOOD] * 257,
        [{**GOOD, "parts": 0}],
        [{**GOOD, "parts": 10**6}],
        [{**GOOD, "parts": True}],
        [{**GOOD, "digest": "../" + "0" * 29}],
        [{**GOOD, "digest": "0"}],
        [{**GOOD, "at": []}],
        [{**GOOD, "at": [None]}],
        [{**GOOD, "at": "a"}],
        [{**GOOD, "at": ["a"] * 33}],
    ],
)
def test_a_head_that_names_no_parts_of_ours_is_refused_before_anything_is_read(
    named: object,
) -> None:
    with pytest.raises(ValueError, match=r"long|whole number"):
        references(compact({"long": named}))


@pytest.mark.parametrize("at", [("steps", 3, "x"), ("steps", "x", "y"), ("n", "x"), ("steps", 0)])
def test_an_address_that_leads_nowhere_is_refused(at: tuple[str | int, ...]) -> None:
    packed = pack("x" * (LONG_BYTES + 1))
    assert packed is not None
    found = assemble({"steps": [{}], "n": 5}, {at: packed})
    with pytest.raises(ValueError, match="leads nowhere"):
        join(found.head, found.parts)


def test_values_that_are_put_into_each_other_do_not_nest_without_end() -> None:
    """JSON too deep to be written would end the program, and not only refuse the node."""
    nested: Any = {}
    for _ in range(30):
        nested = {"a": nested}
    parts = (zlib.compress(compact(nested)),)
    packed = Packed(digest=hashlib.sha256(parts[0]).hexdigest()[:DIGEST_LENGTH], parts=parts)
    inmost: list[Address] = [("x", *("a" * (30 * number))) for number in range(60)]
    found = assemble({}, dict.fromkeys(inmost, packed))
    with pytest.raises(ValueError, match="more than 32"):
        join(found.head, found.parts)


def test_values_that_unpack_to_more_than_a_document_may_have_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed = pack("x" * 20_000)
    assert packed is not None
    found = assemble({}, {("a",): packed, ("b",): packed, ("c",): packed})
    assert len(json.loads(join(found.head, found.parts))) == 3
    monkeypatch.setattr(long_document, "MAX_BYTES", 50_000)
    with pytest.raises(ValueError, match="unpacks to more than"):
        join(found.head, found.parts)
