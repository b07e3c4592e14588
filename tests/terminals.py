"""What a pseudo-terminal shows: the kernel passes it on in pieces, and late."""

import os


def shown_by(ours: int) -> str:
    """Return all that was shown, once nobody has the other end open; closes this one."""
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65_536)
        except OSError:  # EIO is the end of a terminal
            break
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")
