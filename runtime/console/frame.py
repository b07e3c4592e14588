"""The frame of every page of the console: head, ways to the other pages, what is live. Pure."""

from collections.abc import Sequence
from html import escape
from typing import Final

from runtime.pages.markup import moment, shown
from wire.values import frozen

ROOT: Final = "/console"
CURRENT: Final = ' aria-current="page"'


@frozen(kw_only=False)
class PagePart:
    """A piece of a page that is replaced as a whole when it changes; ids are unique in a page."""

    id: str
    html: str


@frozen
class PageParts:
    """A page: what is live of it, and a form that stays as the reader has it."""

    title: str
    parts: Sequence[PagePart]
    form: str = ""


@frozen
class Frame:
    """What all pages of one program have alike."""

    program: str
    """`failover serve on host`."""
    ways: Sequence[tuple[str, str]]
    """Address below ROOT, and name."""
    version: str
    """Of the style and the script, so that a browser's copy of older ones is not taken."""

    def page(self, parts: PageParts, here: str, events: str | None, now_ms: int) -> bytes:
        """Return the page; `events` is the address at which its changes come, if any do."""
        ways = "".join(
            f'<li><a href="{_address(path)}" accesskey="{number % 10}"'
            f"{CURRENT if path == here else ''}>{escape(name)}</a></li>"
            for number, (path, name) in enumerate(self.ways, 1)
        )
        title = shown(parts.title)
        body = "".join(section_of(one) for one in parts.parts)
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{title}</title>"
            f'<link rel="icon" href="{ROOT}/assets/icon.svg">'
            f'<link rel="stylesheet" href="{ROOT}/assets/console.css?{self.version}">'
            f'<script defer src="{ROOT}/assets/console.js?{self.version}"></script></head>\n'
            f'<body data-events="{escape(events or "")}" data-now="{now_ms}">'
            '<a class="skip" href="#main">Skip to the content</a>'
            f'<div class="top" role="banner"><p class="program">{shown(self.program)}</p>'
            f'<nav aria-label="Pages"><ul>{ways}</ul></nav>'
            f'<p id="live" role="status">As of {moment(now_ms)}</p></div>'
            f'<main id="main" tabindex="-1"><h1>{title}</h1>{parts.form}'
            f'<div id="parts">{body}</div></main></body></html>\n'
        ).encode()


def section_of(part: PagePart) -> str:
    """Return a piece as it stands in the page."""
    return f'<section id="{escape(part.id)}">{part.html}</section>'


def _address(path: str) -> str:
    return escape(f"{ROOT}/{path}" if path else ROOT)
