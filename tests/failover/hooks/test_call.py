"""One call of a hook: real commands, a real HTTPS server, and each way in which it may fail."""

import socket
import sys
import threading
import time
from pathlib import Path

import pytest
import trio

from failover.hooks.call import HookFailed, call_hook
from failover.hooks.occasion import signature
from runtime.configuration.hooks_section import HookConfig, Webhook, signing_key
from runtime.tokens.https_address import parse_https
from tests.doubles.certificates import Certificates
from tests.doubles.webhook_receiver import Receiver, receiving
from tests.failover.hooks.occasions import OCCASION

KEY = "whsec_" + "A" * 40


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def command(script: str, *, check: str | None = None, timeout_ms: int = 20_000) -> HookConfig:
    return HookConfig(
        name="dns",
        step="switch",
        is_before=False,
        command=("/bin/sh", "-c", script),
        check=() if check is None else ("/bin/sh", "-c", check),
        timeout_ms=timeout_ms,
    )


def webhook(receiver: Receiver, ca: Path) -> HookConfig:
    posts = Webhook(address=parse_https(receiver.url), secret=KEY, ca=ca)
    return HookConfig(name="dns", step="switch", is_before=False, webhook=posts)


async def failure(hook: HookConfig) -> str:
    with pytest.raises(HookFailed) as caught:
        await call_hook(hook, OCCASION)
    assert KEY not in str(caught.value) + repr(hook)
    return str(caught.value)


async def test_a_command_is_told_by_its_environment_and_its_last_line_is_kept() -> None:
    script = 'echo first; echo "$KAFKA_DR_ACTIVE is active, $KAFKA_DR_KEY"; echo'
    said = await call_hook(command(script), OCCASION)
    assert said == "dc2 is active, 1700000000000-3-switch-after-do-dns"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo no; echo such record >&2; exit 3", "sh ended with status 3: such record"),
        ("exit 1", "sh ended with status 1"),
        ("kill -9 $$", "sh was ended by signal 9"),
        (r"printf 'a\033[31mb\n'; exit 1", r"sh ended with status 1: a\x1b[31mb"),
    ],
)
async def test_a_command_that_fails_is_quoted_in_one_printable_line(script: str, said: str) -> None:
    assert await failure(command(script)) == said


async def test_a_command_that_is_not_there_fails() -> None:
    hook = HookConfig(name="dns", step="switch", is_before=False, command=("/no/such",))
    assert "such ended with status 127" in await failure(hook)


async def test_a_command_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"sleep 1000 & echo $! > {pid_file}; wait"
    assert await failure(command(script, timeout_ms=700)) == (
        "sh did not end within 0.7 s, and was killed"
    )
    state = Path(f"/proc/{pid_file.read_text().strip()}/stat")
    deadline = time.monotonic() + 30
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, "it lives on"
        await trio.sleep(0.01)


async def test_a_command_that_prints_without_end_is_bounded_by_its_time() -> None:
    assert "did not end" in await failure(command("cat /dev/zero", timeout_ms=300))


async def test_what_a_command_leaves_running_holds_nothing_up() -> None:
    began = time.monotonic()
    assert await call_hook(command("echo done; sleep 20 & exit 0"), OCCASION) == "done"
    assert time.monotonic() - began < 10


async def test_a_hook_that_says_done_and_is_not_is_found_by_its_check(tmp_path: Path) -> None:
    hook = command("exit 0", check="echo dc1 still; exit 1", timeout_ms=500)
    assert await failure(hook) == (
        "said done, and its check does not: sh ended with status 1: dc1 still"
    )
    late = tmp_path / "late"
    hook = command(f"(sleep 0.3; touch {late}) & exit 0", check=f"test -e {late}")
    await call_hook(hook, OCCASION)


async def test_a_webhook_gets_a_signed_post(certificates: Certificates) -> None:
    async with receiving(certificates, 204) as receiver:
        said = await call_hook(webhook(receiver, certificates.ca), OCCASION)
    assert said == f"{receiver.url} answered 204"
    [found] = receiver.received
    headers = found.headers
    assert headers["webhook-signature"] == signature(
        signing_key(KEY), headers["webhook-id"], headers["webhook-timestamp"], found.body
    )


async def test_the_status_of_a_webhook_counts_whatever_its_body_is(
    certificates: Certificates,
) -> None:
    async with receiving(certificates, 200) as receiver:
        receiver.withheld_bytes = 1_000_000_000
        said = await call_hook(webhook(receiver, certificates.ca), OCCASION)
    assert said == f"{receiver.url} answered 200"


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_a_webhook_that_does_not_accept_has_failed(
    certificates: Certificates, status: int
) -> None:
    async with receiving(certificates, status) as receiver:
        said = await failure(webhook(receiver, certificates.ca))
    assert said == f"{receiver.url} answered {status}"


async def test_a_webhook_that_is_not_trusted_or_away_is_named(
    certificates: Certificates, tmp_path: Path
) -> None:
    async with receiving(certificates, 200) as receiver:
        said = await failure(webhook(receiver, certificates.strange_ca))
        assert said.startswith(f"{receiver.url}: ")
        assert said.endswith(f"(trusted is {certificates.strange_ca})")
        gone = tmp_path / "gone.pem"
        assert await failure(webhook(receiver, gone)) == (
            f"{receiver.url}: No such file or directory (trusted is {gone})"
        )
        assert receiver.received == []
    assert await failure(webhook(receiver, certificates.ca)) == (
        f"{receiver.url}: Connection refused"
    )


async def test_a_command_reads_nothing_of_ours() -> None:
    script = "import sys; print('empty' if not sys.stdin.read() else 'more')"
    hook = HookConfig(
        name="x", step="switch", is_before=False, command=(sys.executable, "-c", script)
    )
    assert await call_hook(hook, OCCASION) == "empty"


async def test_a_webhook_whose_name_is_long_looked_up_ends_within_its_time(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: looked_up.wait(20) and [])
    posts = Webhook(address=parse_https("https://hooks.test/x"), secret=KEY, ca=certificates.ca)
    hook = HookConfig(name="dns", step="switch", is_before=False, webhook=posts, timeout_ms=100)
    began = time.monotonic()
    try:
        assert await failure(hook) == "https://hooks.test/x did not answer in 0.1 s"
    finally:
        looked_up.set()
    assert time.monotonic() - began < 10
