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
    """Run the command line and exit with its status.

    At a Ctrl-C while modules are imported the process just ends: a KeyboardInterrupt may be raised
    where Python ignores it, as in what an import lock calls back.
    """
    hold_hangups(sys.argv[1:])
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else it is ignored, in the background of a shell
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from mirror.cli import main as run  # noqa: PLC0415 - what takes a second

    signal.signal(signal.SIGINT, before)
    try:
        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
