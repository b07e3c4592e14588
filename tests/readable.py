"""Whether a descriptor can be read, whatever its number: `select` takes those below 1024 alone.

A test process whose clients and clusters are many has more.
"""

import select


def is_readable(descriptor: int, timeout_s: float | None) -> bool:
    """Wait until the descriptor can be read, or has ended; None waits for ever."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))
