"""The functions that cost most, read out of a flame graph that py-spy drew. Pure.

py-spy writes one format at a time, and its picture holds every frame with its width in samples.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Final

_FRAME: Final = re.compile(
    r"<title>(?P<title>[^<]*) \([\d,]+ samples?, [^<]*</title>"
    r'<rect [^>]*\by="(?P<y>\d+)"[^>]*\bfg:x="(?P<x>\d+)" fg:w="(?P<width>\d+)"'
)
_LINE: Final = re.compile(r":\d+\)$")
MOST: Final = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A box of the picture: a function below all those that called it; `width` in samples."""

    function: str
    depth: int
    x: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a function takes itself, and with all it calls, as shares of all samples."""

    function: str
    own: float
    cumulative: float


def frames_of(picture: str) -> list[Frame]:
    """Return the boxes of a flame graph that hangs from its root; lines of a function are one."""
    return [
        Frame(
            function=_LINE.sub(")", unescape(found["title"])),
            depth=int(found["y"]),
            x=int(found["x"]),
            width=int(found["width"]),
        )
        for found in _FRAME.finditer(picture)
    ]


def costs(frames: Iterable[Frame]) -> list[Cost]:
    """Return every function, the most expensive in itself first.

    A function that calls itself counts once where it is called first.
    """
    own: Counter[str] = Counter()
    cumulative: Counter[str] = Counter()
    above: list[Frame] = []
    total = 0
    for frame in sorted(frames, key=lambda frame: (frame.x, frame.depth)):
        while above and above[-1].depth >= frame.depth:
            above.pop()
        if above:
            own[above[-1].function] -= frame.width
        else:
            total += frame.width
        own[frame.function] += frame.width
        if frame.function not in {each.function for each in above}:
            cumulative[frame.function] += frame.width
        above.append(frame)
    return [
        Cost(function=name, own=width / total, cumulative=cumulative[name] / total)
        for name, width in own.most_common()
        if name != "all"
    ]


def table(found: Sequence[Cost], most: int = MOST) -> list[str]:
    """Return lines with the shares of the functions at the top."""
    return [
        "  self    cum.  function",
        *(f"{each.own:6.1%}  {each.cumulative:6.1%}  {each.function}" for each in found[:most]),
    ]
