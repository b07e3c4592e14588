"""Whether the mirror hears of its source, by what it writes into the witness. Pure."""

from dataclasses import dataclass

from runtime.coordination.known_ends import UNSEEN_MS, KnownEnds


@dataclass(slots=True)
class MirrorView:
    """Follows the mirror's news, each by the clock of the machine that it is of.

    How old the news were when they were written, the mirror's clock tells; for how long no others
    came, ours does. A mirror that has ended, or was never there, tells nothing.
    """

    _at_ms: int | None = None
    _changed_ms: int = 0

    def hears(self, known: KnownEnds | None, now_ms: int) -> bool:
        """Tell whether the mirror has heard of its source just now."""
        if known is None or not known.ends:
            return False
        if known.at_ms != self._at_ms:
            self._at_ms, self._changed_ms = known.at_ms, now_ms
        heard_ms = max(one.heard_ms for one in known.ends.values())
        return known.at_ms - heard_ms <= UNSEEN_MS and now_ms - self._changed_ms <= known.overdue_ms
