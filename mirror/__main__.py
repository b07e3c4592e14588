"""The program `mirror`, from its first moment on: its imports alone take a second."""

import signal
import sys
from collections.abc import Sequence
from typing import Final

INTERRUPTED: Final = 130
"""As `mirror.cli` ends at a Ctrl-C, too."""


def hold_hangups(arguments: Sequence[str]) -> None:
    """Of a daemon that starts, keep a SIGHUP until it can obey; unheld it would be its end.

    Any other command ends, when its terminal does.
    """
    command = next((word for word in arguments if not word.startswith("-")), "")
    if command == "run":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})


def main() -> None:
    """Run the command line and exit with its status."""
    hold_hangups(sys.argv[1:])
    try:
        from mirror.cli import main as run  # noqa: PLC0415 - what takes a second

        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
