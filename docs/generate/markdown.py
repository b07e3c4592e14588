"""The few shapes that reference pages are made of."""

from collections.abc import Iterable, Sequence
from typing import Final

NOTE: Final = "Generated from the code by `make docs`; do not edit."


def page(title: str, introduction: str, *parts: str) -> str:
    """Return a whole page."""
    return "\n\n".join([f"# {title}", NOTE, introduction.strip(), *parts]) + "\n"


def section(title: str, *parts: str) -> str:
    """Return a section with its heading."""
    return "\n\n".join([f"## {title}", *parts])


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; `|` inside of a cell does not end it."""
    lines = [_row(header), _row(["---"] * len(header)), *map(_row, rows)]
    return "\n".join(lines)


def code(text: str, language: str = "") -> str:
    """Return a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def literal(text: str) -> str:
    """Return a text as code within a line, an empty one as nothing."""
    return f"`{text}`" if text else ""


def sentence(text: str) -> str:
    """Return a text that begins with a capital letter and ends with a full stop."""
    text = " ".join(text.split())
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", ":")) else ".")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
