"""Faults that last: shown while they do, logged when they begin and then once a minute."""

import logging
from typing import Final

from runtime.process.clock import monotonic_ms

_LOG = logging.getLogger(__name__)

AGAIN_MS: Final = 60_000


class FaultNote:
    """The faults that keep a part of a program from working now, by place (a broker, a group).

    A fault that goes on is the same fault, although its wording may change from try to try.
    """

    def __init__(self, part: str) -> None:
        self._part = part
        self._texts: dict[str, str] = {}
        self._logged_ms: dict[str, int] = {}
        self._refused: set[str] = set()

    @property
    def text(self) -> str | None:
        """The present faults as one text; None when there is none."""
        return "; ".join(dict.fromkeys(self._texts.values())) or None

    @property
    def is_refusal(self) -> bool:
        """Whether credentials or rights are the reason: waiting alone will not help."""
        return bool(self._refused)

    def note(self, text: str, where: str = "", *, is_refusal: bool = False) -> None:
        """Note a fault at this place; log it when it begins and then once in AGAIN_MS."""
        self._texts[where] = text
        (self._refused.add if is_refusal else self._refused.discard)(where)
        now, logged = monotonic_ms(), self._logged_ms.get(where)
        if logged is None or now - logged >= AGAIN_MS:
            self._logged_ms[where] = now
            _LOG.warning("%s: %s", self._part, text)

    def clear(self, where: str = "") -> None:
        """Note that this place works (again); log the end of its fault."""
        self._refused.discard(where)
        if self._texts.pop(where, None) is not None:
            del self._logged_ms[where]
            _LOG.info("%s: works again%s", self._part, f" ({where})" if where else "")
