"""Every message in every version that kio still knows: the same bytes, in both directions."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import examples
from tests.wire import kio_referee
from tests.wire.message_strategies import VERSIONED_CLASSES, case_name, messages
from wire.schema import decode_prefix, encode

KNOWN_TO_KIO = [case for case in VERSIONED_CLASSES if kio_referee.is_known(*case)]


def test_each_message_has_the_fields_that_kio_has() -> None:
    """In one test: each alone would cost more than the comparison."""
    for case in KNOWN_TO_KIO:
        assert kio_referee.our_field_names(*case) == kio_referee.their_field_names(*case), case


@pytest.mark.parametrize(("cls", "version"), KNOWN_TO_KIO, ids=case_name)
@settings(max_examples=examples(2, 50))
@given(data=st.data())
def test_our_bytes_are_those_of_kio_in_both_directions(
    cls: type[Any], version: int, data: st.DataObject
) -> None:
    message = data.draw(messages(cls, version))
    raw = encode(message, version)

    assert raw == kio_referee.encode(message, version)
    theirs = kio_referee.counterpart(cls, version)
    assert kio_referee.decode(cls, raw, version) == kio_referee.translated(message, theirs)
    assert decode_prefix(cls, raw, version) == (message, len(raw))
