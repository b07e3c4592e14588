"""A command that prints a token: what MSK IAM, Azure and Google offer their users."""

import os
import selectors
import signal
import subprocess
from dataclasses import field
from time import monotonic
from typing import Final

from runtime.process.clock import wall_ms
from runtime.tokens.answers import MOST_ANSWER_BYTES, token_of_text
from runtime.tokens.held_token import HeldToken
from wire.net.errors import TokenUnavailable
from wire.net.security import Token
from wire.values import frozen

DEADLINE_S: Final = 15.0
"""A command that takes longer is killed, with all that it has started."""
_CHUNK_BYTES: Final = 16 * 1024


@frozen
class TokenCommand:
    """Runs the command when a token is needed; no shell reads it, and its input is empty."""

    key: str
    """The setting that names it, for complaints."""
    command: tuple[str, ...] = field(repr=False)
    """Its arguments may hold a secret."""
    deadline_s: float = DEADLINE_S
    held: HeldToken = field(default_factory=HeldToken, compare=False, repr=False)

    @property
    def origin(self) -> str:
        """Return the setting and the command, without its arguments."""
        return f"{self.key}: {self.command[0]}"

    def token(self) -> Token:
        """Return what the command printed. Raises TokenUnavailable, which shows none of it."""
        return self.held.token(self._ask)

    def forget(self, token: Token) -> None:
        """Run the command for the next login."""
        self.held.forget(token)

    def _ask(self) -> Token:
        asked_at_ms = wall_ms()
        try:
            printed = _output_of(self.command, self.deadline_s)
            return token_of_text(printed, asked_at_ms)
        except TokenUnavailable as problem:
            raise TokenUnavailable(f"{self.origin}: {problem}") from None


def _output_of(command: tuple[str, ...], deadline_s: float) -> bytes:
    """Return what the command prints; its errors are not read, they may quote a token."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as problem:
        raise TokenUnavailable(f"cannot be run: {problem.strerror}") from None
    assert process.stdout is not None, "it is a pipe"
    deadline = monotonic() + deadline_s
    with process.stdout:
        try:
            printed = _read(process.stdout.fileno(), deadline)
            status = process.wait(max(deadline - monotonic(), 0.0))
        except (TimeoutError, subprocess.TimeoutExpired):
            _kill(process)
            raise TokenUnavailable(f"did not end within {deadline_s:g} s, and was killed") from None
        except BaseException:
            _kill(process)
            raise
    if status < 0:
        raise TokenUnavailable(f"was ended by signal {-status}")
    if status > 0:
        raise TokenUnavailable(f"ended with status {status}; run it by hand to see why")
    return printed


def _read(pipe: int, deadline: float) -> bytes:
    printed = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if not selector.select(max(deadline - monotonic(), 0.0)):
                raise TimeoutError
            chunk = os.read(pipe, _CHUNK_BYTES)
            if not chunk:
                return bytes(printed)
            printed += chunk
            if len(printed) > MOST_ANSWER_BYTES:
                raise TokenUnavailable(f"printed more than {MOST_ANSWER_BYTES} bytes")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the command and what it has started.

    Nobody has waited for it yet, so its id names nobody else, even when it has ended.
    """
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
