"""The documentation as Markdown: its pages, their headings, links, code blocks and code spans."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FENCE: Final = re.compile(r"^(?P<fence>```+)(?P<language>.*)$")
HEADING: Final = re.compile(r"^#{1,6} +(?P<title>.*)$")
LINK: Final = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<target>[^()\s]+)\)")
SPAN: Final = re.compile(r"`(?P<code>[^`]+)`")
GUARANTEES: Final = ROOT / "docs" / "concepts" / "guarantees.md"
TEST: Final = re.compile(r"(tests/[\w/]+\.py)::(test_\w+)")
EXTERNAL: Final = re.compile(r"^(?:https?|mailto):")


def all_pages() -> list[Path]:
    """Return every page that people read, of the whole repository."""
    top = [*ROOT.glob("*.md"), *(ROOT / "deploy").glob("*.md")]
    return sorted([*top, *(ROOT / "docs").rglob("*.md")])


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of code, and the line at which it begins."""

    language: str
    lines: tuple[str, ...]
    first_line: int


def blocks(text: str) -> Iterator[Block]:
    """Yield the code blocks of a page."""
    fence, language, lines, first_line = "", "", list[str](), 0
    for number, line in enumerate(text.splitlines(), start=1):
        opens = FENCE.match(line.strip())
        if not fence and opens:
            fence, language, lines, first_line = opens["fence"], opens["language"], [], number + 1
        elif fence and line.strip() == fence:
            yield Block(language=language, lines=tuple(lines), first_line=first_line)
            fence = ""
        elif fence:
            lines.append(line)


def prose(text: str) -> str:
    """Return a page without its code blocks; lines keep their numbers."""
    kept, fence = [], ""
    for line in text.splitlines():
        opens = FENCE.match(line.strip())
        is_code = bool(fence or opens)
        if not fence and opens:
            fence = opens["fence"]
        elif fence and line.strip() == fence:
            fence = ""
        kept.append("" if is_code else line)
    return "\n".join(kept)


def anchors(text: str) -> set[str]:
    """Return what `#...` may say of a page: code hosts and the site make the same of a heading."""
    found: set[str] = set()
    for line in prose(text).splitlines():
        heading = HEADING.match(line)
        if heading is None:
            continue
        slug = re.sub(r"[^\w\- ]", "", heading["title"].lower()).replace(" ", "-")
        number = 0
        while (unique := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(unique)
    return found


def broken_links(page: Path) -> Iterator[str]:
    """Yield a line for each link of a page that leads nowhere within the repository."""
    for number, line in enumerate(prose(page.read_text()).splitlines(), start=1):
        for link in LINK.finditer(SPAN.sub("", line)):
            target = link["target"]
            if EXTERNAL.match(target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists():
                yield f"{page}:{number}: {target}: there is no {path}"
            elif anchor and (file.suffix != ".md" or anchor not in anchors(file.read_text())):
                yield f"{page}:{number}: {target}: {file.name} has no heading of that name"
