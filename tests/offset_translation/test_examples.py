"""What the library's docstrings show is so."""

import doctest
from types import ModuleType

import pytest

import offset_translation
from offset_translation import both_ways, copies, translation


@pytest.mark.parametrize("module", [offset_translation, translation, both_ways, copies])
def test_the_examples_of_the_docstrings_are_true(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
