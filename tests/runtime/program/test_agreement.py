"""A command that destroys something goes on only if somebody wants it."""

import sys
from io import StringIO

import pytest

from runtime.program.agreement import NotAgreed, require_agreement
from runtime.program.program import BadInput


class Terminal(StringIO):
    """Standard input on which somebody types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("typed", ["y\n", "Y\n", " yes \n"])
def test_a_yes_on_the_terminal_is_enough(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    require_agreement("Delete topic a\nb?", is_given=False)
    assert capsys.readouterr().err == "Delete topic a\\nb? [y/N] "


@pytest.mark.parametrize("typed", ["\n", "", "n\n", "yess\n"])
def test_everything_else_is_a_no(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    with pytest.raises(NotAgreed, match="nothing was changed"):
        require_agreement("Delete?", is_given=False)


def test_without_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO("y\n"))
    with pytest.raises(BadInput, match="--yes"):
        require_agreement("Delete?", is_given=False)
    require_agreement("Delete?", is_given=True)
