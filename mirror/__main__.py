"""The program `mirror`, from its first moment on."""

import sys

from runtime.program.starting import hold_hangups, interrupts_just_end, nothing_is_garbage


def main() -> int:
    """Run the program and return its exit status.

    Of a daemon a SIGHUP is kept until the daemon can follow it; any other command ends when its
    terminal does.
    """
    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    if command == "run":
        hold_hangups()
    with interrupts_just_end(), nothing_is_garbage():
        from mirror.cli import main as run  # noqa: PLC0415 - after the signals are seen to
    return run()


if __name__ == "__main__":
    sys.exit(main())
