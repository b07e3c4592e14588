"""What a broken or hostile peer sends ends in MalformedMessage, at once, and nothing else."""

from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import examples
from tests.wire.message_strategies import MESSAGE_CLASSES, case_name, messages
from wire.primitives import MalformedMessage
from wire.schema import decode, encode

MUTATIONS: Final = 15
MOST_EDITS: Final = 10


def fault_of(cls: type[Any], raw: bytes, version: int) -> MalformedMessage | None:
    """Decode; return why it was refused, or None. Any other exception is a failure."""
    try:
        decode(cls, raw, version)
    except MalformedMessage as fault:
        return fault
    return None


def decode_or_refuse(cls: type[Any], raw: bytes, version: int) -> None:
    fault = fault_of(cls, raw, version)
    if fault is not None:
        assert fault.where
        assert 0 <= fault.position <= len(raw)


@pytest.mark.parametrize("cls", MESSAGE_CLASSES, ids=case_name)
@settings(max_examples=examples(2))
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_a_mutated_message_is_decoded_or_refused(
    cls: type[Any], data: st.DataObject, seed: int
) -> None:
    """Each message is mutated in many ways: to draw one takes longest."""
    chance = Random(seed)
    version = data.draw(st.sampled_from(list(cls.VERSIONS)))
    valid = encode(data.draw(messages(cls, version)), version)
    for _ in range(MUTATIONS):
        raw = bytearray(valid)
        for _ in range(chance.randrange(MOST_EDITS)):
            position, byte = chance.randrange(max(len(raw), 1)), chance.randrange(256)
            raw[position:position] = [byte]
            del raw[(position + 1) % len(raw)]
        decode_or_refuse(cls, bytes(raw), version)


@pytest.mark.parametrize("cls", MESSAGE_CLASSES, ids=case_name)
@settings(max_examples=examples(2, 20))
@given(data=st.data())
def test_a_truncated_message_is_refused_wherever_it_is_cut(
    cls: type[Any], data: st.DataObject
) -> None:
    version = data.draw(st.sampled_from(list(cls.VERSIONS)))
    raw = encode(data.draw(messages(cls, version)), version)
    for end in range(len(raw)):
        with pytest.raises(MalformedMessage):
            decode(cls, raw[:end], version)


@pytest.mark.parametrize("cls", MESSAGE_CLASSES, ids=case_name)
@settings(max_examples=examples(4))
@given(raw=st.binary(max_size=60))
def test_noise_is_decoded_or_refused(cls: type[Any], raw: bytes) -> None:
    for version in (cls.VERSIONS[0], cls.VERSIONS[-1]):
        decode_or_refuse(cls, raw, version)
