"""When a rehearsal begins by itself. Pure; times in ms since the epoch."""

from runtime.configuration.rehearsal_section import RehearsalConfig


def is_due(config: RehearsalConfig, *, now_ms: int, since_ms: int) -> bool:
    """Tell whether a time to rehearse has come since a moment.

    That is the begin of the last rehearsal, or the start of who asks: a time that everybody has
    slept through is left out. Nobody wants at noon what was meant for the night.
    """
    if config.every_ms is None:
        return False
    behind_ms = (now_ms - config.at_ms) % config.every_ms
    return since_ms < now_ms - behind_ms


def counts_from_ms(config: RehearsalConfig, *, now_ms: int, since_ms: int, last_ms: int) -> int:
    """Return the moment since which a time to rehearse counts, for `is_due`.

    That is `since_ms`, of whoever asks, or the begin of the last rehearsal, whichever is later. One
    that lies more than a period ahead was begun by a clock that was wrong, and does not count: it
    would put off the next one until then.
    """
    if config.every_ms is not None and last_ms - now_ms > config.every_ms:
        return since_ms
    return max(since_ms, last_ms)
