"""Faults that last: shown while they do, logged when they begin and then once a minute."""

import logging
from typing import Final

from runtime.clock import monotonic_ms

_LOG = logging.getLogger(__name__)

AGAIN_MS: Final = 60_000


class FaultNote:
    """What keeps a part of a program from working now, by whom it meets (a broker, a group).

    The wording may change from try to try; that it goes on is the same fault.
    """

    def __init__(self, part: str) -> None:
        """Name the part in every line logged."""
        self._part = part
        self._texts: dict[str, str] = {}
        self._logged_ms: dict[str, int] = {}
        self._refused: set[str] = set()

    @property
    def text(self) -> str | None:
        """What is wrong at present; None when nothing is."""
        return "; ".join(dict.fromkeys(self._texts.values())) or None

    @property
    def is_refusal(self) -> bool:
        """Whether credentials or rights are the reason: waiting alone will not help."""
        return bool(self._refused)

    def note(self, text: str, where: str = "", *, is_refusal: bool = False) -> None:
        """Take note of a fault there."""
        self._texts[where] = text
        (self._refused.add if is_refusal else self._refused.discard)(where)
        now, logged = monotonic_ms(), self._logged_ms.get(where)
        if logged is None or now - logged >= AGAIN_MS:
            self._logged_ms[where] = now
            _LOG.warning("%s: %s", self._part, text)

    def clear(self, where: str = "") -> None:
        """It works there."""
        self._refused.discard(where)
        if self._texts.pop(where, None) is not None:
            del self._logged_ms[where]
            _LOG.info("%s: works again%s", self._part, f" ({where})" if where else "")
