"""One call of a hook: its command or its POST, and behind it the check that its work is to be seen.

Whatever a hook does, a call ends within its time: a command that takes longer is killed with all
that it has started, and of what it prints only the end is kept.
"""

import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import trio

from failover.hooks.occasion import Occasion, posted
from runtime.configuration.hooks_section import HookConfig, Webhook
from runtime.process.child import kill_child, open_child
from runtime.process.clock import wall_ms
from runtime.process.output import escaped
from runtime.tokens.https_address import Silent
from wire.net.security import Tls
from wire.net.tls_context import make_context, reason_of

TAIL_BYTES: Final = 4 * 1024
"""So much of what a command prints last is kept."""
SAID_CHARACTERS: Final = 200
LEFT_IN_PIPE_S: Final = 0.2
"""So long is read what a command has printed before it ended: others may hold its pipe open."""
CHECK_AGAIN_S: Final = 0.25

Call: TypeAlias = Callable[[HookConfig, Occasion], Awaitable[str]]
"""Makes one call and returns what the hook said; raises HookFailed."""


class HookFailed(Exception):
    """A call did not do what it should; the message is one line that says why."""


async def call_hook(hook: HookConfig, occasion: Occasion) -> str:
    """Call a hook once, and have it checked; return its last line. Raises HookFailed."""
    environment = {**os.environ, **occasion.environment()}
    if hook.webhook is None:
        said = await _run(hook.command, environment, hook.timeout_ms)
    else:
        said = await _post(hook.webhook, occasion, hook.timeout_ms)
    if hook.check:
        await _check(hook.check, environment, hook.timeout_ms)
    return said


async def _check(check: tuple[str, ...], environment: Mapping[str, str], timeout_ms: int) -> None:
    """Ask again and again for so long; raises HookFailed with the last no."""
    deadline = trio.current_time() + timeout_ms / 1_000
    while True:
        try:
            await _run(check, environment, timeout_ms)
        except HookFailed as problem:
            if trio.current_time() + CHECK_AGAIN_S >= deadline:
                raise HookFailed(f"said done, and its check does not: {problem}") from None
            await trio.sleep(CHECK_AGAIN_S)
        else:
            return


async def _run(command: tuple[str, ...], environment: Mapping[str, str], timeout_ms: int) -> str:
    """Run a command to its end; return the last line that it printed. Raises HookFailed."""
    reading, writing = os.pipe()
    tail = bytearray()
    async with trio.lowlevel.FdStream(reading) as pipe:
        with os.fdopen(writing, "wb") as output:
            process = await open_child(command, output=output, environment=environment)
        assert process.stdin is not None, "the child was started by open_child"
        try:
            with trio.move_on_after(timeout_ms / 1_000) as patience:
                await _end_of(process, pipe, tail)
        finally:
            if process.returncode is None:
                kill_child(process)
            with trio.CancelScope(shield=True):
                await process.wait()
                await process.stdin.aclose()
    status = process.returncode
    assert status is not None, "it was waited for"
    said = last_line(bytes(tail))
    if status == 0 and not patience.cancelled_caught:
        return said
    name = Path(command[0]).name
    if patience.cancelled_caught:
        raise HookFailed(f"{name} did not end within {timeout_ms / 1_000:g} s, and was killed")
    if status < 0:
        raise HookFailed(f"{name} was ended by signal {-status}")
    raise HookFailed(f"{name} ended with status {status}{f': {said}' if said else ''}")


async def _end_of(process: trio.Process, pipe: trio.lowlevel.FdStream, tail: bytearray) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_keep_tail, pipe, tail)
        await process.wait()
        nursery.cancel_scope.deadline = trio.current_time() + LEFT_IN_PIPE_S


async def _keep_tail(pipe: trio.lowlevel.FdStream, tail: bytearray) -> None:
    async for chunk in pipe:
        tail += chunk
        del tail[:-TAIL_BYTES]


def last_line(printed: bytes) -> str:
    """Return the last line with something in it, bounded, as one printable line."""
    lines = [line for line in printed.decode(errors="replace").splitlines() if line.strip()]
    return escaped(lines[-1].strip())[:SAID_CHARACTERS] if lines else ""


async def _post(webhook: Webhook, occasion: Occasion, timeout_ms: int) -> str:
    """Send the POST; return what answers. Raises HookFailed, which shows no secret."""
    from runtime.tokens.https import post  # noqa: PLC0415 - h11, for who has a webhook

    try:
        headers, body = posted(occasion, webhook.signing_key(), wall_ms())
    except ValueError as problem:
        raise HookFailed(f"its secret {problem}") from None
    tls = Tls(ca=webhook.ca)
    try:
        context = make_context(tls)
    except OSError as problem:
        why = reason_of(problem) if isinstance(problem, ssl.SSLError) else problem.strerror
        raise HookFailed(f"{webhook.address}: {why} ({tls.trusted})") from None
    try:
        deadline_s = timeout_ms / 1_000
        asking = partial(post, webhook.address, context, headers, body, wants_body=False)
        asking = partial(asking, deadline_s=deadline_s)
        with trio.fail_after(deadline_s):  # looking up a name knows no deadline, and has many hosts
            status, _ = await trio.to_thread.run_sync(asking, abandon_on_cancel=True)
    except (TimeoutError, trio.TooSlowError):
        raise HookFailed(f"{webhook.address} did not answer in {timeout_ms / 1_000:g} s") from None
    except ssl.SSLCertVerificationError as problem:
        raise HookFailed(f"{webhook.address}: {reason_of(problem)} ({tls.trusted})") from None
    except ssl.SSLError as problem:
        raise HookFailed(f"{webhook.address}: {reason_of(problem)}") from None
    except OSError as problem:
        raise HookFailed(f"{webhook.address}: {problem.strerror or problem}") from None
    except Silent as problem:
        raise HookFailed(f"{webhook.address}: {problem}") from None
    if not 200 <= status < 300:
        raise HookFailed(f"{webhook.address} answered {status}")
    return f"{webhook.address} answered {status}"
