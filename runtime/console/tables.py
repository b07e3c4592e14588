"""Tables that are searched, sorted and paged, and the words for what is not known. Pure."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final, TypeVar
from urllib.parse import urlencode

from runtime.pages.browsing import BadTarget
from runtime.pages.markup import moment, shown
from wire.values import frozen

AT_ONCE: Final = 100
"""So many rows a page has."""
MOST_SEARCHED: Final = 200
"""So many characters a search has at most."""
MOST_PAGES: Final = 100_000

T = TypeVar("T")


@frozen(kw_only=False)
class Column:
    """A column; with `sort` its head is a link that sorts by that."""

    name: str
    is_number: bool = False
    sort: str = ""
    is_short: bool = False
    """Whether its cells stay on one line."""


@frozen
class ListQuery:
    """What a reader wants to see of a long list."""

    searched: str = ""
    page: int = 1
    sort: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str], sorts: Sequence[str]) -> "ListQuery":
        """Return what a query says; the first of `sorts` is the usual. Raises BadTarget."""
        searched = query.get("q", "").strip()
        if len(searched) > MOST_SEARCHED:
            raise BadTarget(400, f"a search has {MOST_SEARCHED} characters at most")
        page = query.get("page", "1")
        if not (page.isascii() and page.isdigit() and 0 < int(page[:9]) <= MOST_PAGES):
            raise BadTarget(400, f"page is a number from 1 to {MOST_PAGES}")
        sort = query.get("sort", sorts[0])
        if sort not in sorts:
            raise BadTarget(400, f"sort is one of {', '.join(sorts)}")
        return cls(searched=searched, page=int(page), sort=sort)

    def finds(self, *names: str) -> bool:
        """Tell whether a row with these names is searched for, whatever the case of letters."""
        wanted = self.searched.casefold()
        return not wanted or any(wanted in name.casefold() for name in names)

    def part(self, rows: Sequence[T]) -> Sequence[T]:
        """Return the rows of this page."""
        return rows[(self.page - 1) * AT_ONCE : self.page * AT_ONCE]

    def at(self, **changes: str | int) -> str:
        """Return the query of the same list with something changed."""
        fields = {"q": self.searched, "sort": self.sort, "page": self.page, **changes}
        return escape("?" + urlencode({name: value for name, value in fields.items() if value}))


def table(
    label: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    query: ListQuery | None = None,
) -> str:
    """Return a table of cells that are HTML; on a phone each row is a card."""
    heads = "".join(_head(one, query) for one in columns)
    body = "".join(
        f"<tr>{''.join(_cell(*one) for one in zip(columns, cells, strict=True))}</tr>"
        for cells in rows
    )
    return (
        f'<div class="wide" role="region" aria-label="{shown(label)}" tabindex="0">'
        f'<table class="cards"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _head(column: Column, query: ListQuery | None) -> str:
    name = escape(column.name)
    kind = ' class="number"' if column.is_number else ""
    if query is None or not column.sort:
        return f'<th scope="col"{kind}>{name}</th>'
    is_sorted = query.sort == column.sort
    mark = ' aria-sort="other"' if is_sorted else ""
    arrow = ' <span aria-hidden="true">▾</span>' if is_sorted else ""
    return (
        f'<th scope="col"{kind}{mark}><a href="{query.at(sort=column.sort, page=1)}">{name}</a>'
        f"{arrow}</th>"
    )


def _cell(column: Column, cell: str) -> str:
    name = "number" if column.is_number else "time" if column.is_short else ""
    kind = f' class="{name}"' if name else ""
    return f'<td{kind} data-name="{escape(column.name)}">{cell}</td>'


def pager(query: ListQuery, found: int, whole: int, what: str) -> str:
    """Return how many rows there are, and links to the next and the last page."""
    pages = max(1, -(-found // AT_ONCE))
    searched = f" with “{shown(query.searched)}”" if query.searched else ""
    of_all = f" of {whole:,}" if found != whole else ""
    links = []
    if query.page > 1:
        links.append(f'<a rel="prev" href="{query.at(page=query.page - 1)}">← back</a>')
    if query.page < pages:
        links.append(f'<a rel="next" href="{query.at(page=query.page + 1)}">next →</a>')
    return (
        f'<p class="pager">{found:,}{of_all} {escape(what)}{searched}, page {query.page:,} of'
        f" {pages:,} {' '.join(links)}</p>"
    )


def search_form(query: ListQuery, label: str) -> str:
    """Return the form that searches; the browser sends it without any script."""
    return (
        '<form class="search" role="search"><label for="q">'
        f'{escape(label)}</label> <input id="q" name="q" type="search" accesskey="s"'
        f' maxlength="{MOST_SEARCHED}" value="{escape(query.searched)}">'
        f'<input type="hidden" name="sort" value="{escape(query.sort)}">'
        "<button>Search</button></form>"
    )


def unknown(why: str) -> str:
    """Return that something is not known, and why."""
    return f'<span class="unknown">not known</span> <span class="soft">{shown(why)}</span>'


def count(number: int | None) -> str:
    """Return a number for people; what is not known is no zero."""
    return "not known" if number is None else f"{number:,}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def seconds(number: float | None) -> str:
    """Return a duration for people, at most an hour exactly."""
    if number is None:
        return "not known"
    if number < 100:
        return f"{number:.1f} s"
    if number < 7_200:
        return f"{number / 60:.0f} min"
    return f"{number / 3_600:.1f} h"


def when(at_ms: int) -> str:
    """Return a time, which the browser turns into an age."""
    return f'<time data-ms="{at_ms}">{moment(at_ms)}</time>'


def mark(tone: str, word: str) -> str:
    """Return a word with a colour: good, bad, unsure or calm; the word says it all by itself."""
    return f'<span class="mark {escape(tone)}">{shown(word)}</span>'
