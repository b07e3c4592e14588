"""Addresses as files and commands write them: `host:port`."""

import re
from typing import Final

MAX_LABEL: Final = 63
_ADDRESS: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})")

Address = tuple[str, int]


def parse_address(text: str) -> Address:
    """Return (host, port) of `host:port`; raises ValueError saying what is wrong."""
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not host:port")
    port = int(found["port"])
    if not 0 < port < 65536:
        raise ValueError(f"port {port} of {text!r} is not between 1 and 65535")
    if not all(0 < len(part) <= MAX_LABEL for part in found["host"].removesuffix(".").split(".")):
        raise ValueError(f"{text!r}: each part of a host's name has 1 to {MAX_LABEL} characters")
    return found["host"].strip("[]"), port


def in_brackets(host: str) -> str:
    """Return a host as it stands before `:port`: its own colons would else be taken for that."""
    return f"[{host}]" if ":" in host else host
