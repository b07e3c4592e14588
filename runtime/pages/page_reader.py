"""Read JSON pages of another program of ours, as its door asks for."""

import http.client
import ssl
from typing import Any, Final
from urllib.parse import urlsplit

from runtime.pages.page_door import PageDoor, reader_context
from runtime.untrusted_json import MAX_BYTES, read_json

ASK_TIMEOUT_S: Final = 5.0


class PageUnread(Exception):
    """A page could not be read: the address, why, and what to do."""


class _Shut(http.client.HTTPException):
    """A page is not shown to whom we say we are."""


def read_page(url: str, path: str, door: PageDoor) -> Any:  # noqa: ANN401 - another process' JSON
    """Return the JSON of a path at the host of `url`; blocks for ASK_TIMEOUT_S and more.

    Raises PageUnread.
    """
    try:
        return _read(url, path, door)
    except (OSError, http.client.HTTPException, ValueError) as fault:
        raise PageUnread(_words(fault, url, path, door)) from fault


def _read(url: str, path: str, door: PageDoor) -> Any:  # noqa: ANN401
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=ASK_TIMEOUT_S)
    if parts.scheme == "https":
        context = ssl.create_default_context() if door.tls is None else reader_context(door.tls)
        connection = http.client.HTTPSConnection(
            parts.netloc, timeout=ASK_TIMEOUT_S, context=context
        )
    shown = door.authorization()
    try:
        connection.request("GET", path, headers={} if shown is None else {"Authorization": shown})
        response = connection.getresponse()
        body = response.read(MAX_BYTES + 1)
    finally:
        connection.close()
    if response.status == http.client.UNAUTHORIZED:
        raise _Shut
    if response.status != http.client.OK:
        raise http.client.HTTPException(f"{path} answered {response.status}")
    return read_json(body)


def _words(fault: Exception, url: str, path: str, door: PageDoor) -> str:
    """Say why a page was not read, and what to do."""
    match fault:
        case TimeoutError():
            return (
                f"{url} says nothing within {ASK_TIMEOUT_S:g} s: where the process hangs, end it;"
                " another worker, or its next start, goes on where it was"
            )
        case _Shut():
            return (
                f"{url} refuses what `metrics` of this file has us show ({door.origin}): give both"
                " programs the same one"
            )
        case OSError():
            return f"{url} cannot be asked: {fault.strerror or fault}"
        case _:
            return f"what {url} answers is no {path.removeprefix('/')} of a mirror's: {fault!r}"
