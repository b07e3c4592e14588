"""Every command of every runbook, given on a local stack in the trouble that the page is about.

A page's blocks of `sh` are its commands, in their order. A command ends with status 0, or with the
one that a comment behind it names. Those below "How you know" are given again until they do, for a
while: what they tell of needs its time. `runbook_samples` writes what they said into the pages.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient

from demo.measure import create_topic
from demo.stack import FREE, WITNESS_SECRET, Stack, run_stack
from runtime.process.ports import free_port
from tests.docs.pages import ROOT, blocks

RUNBOOKS: Final = ROOT / "docs" / "runbooks"
TOPIC: Final = "flights"
PARTS: Final = (
    *("How you notice", "Look first", "Do"),
    *("How you know that it is done", "What not to do"),
)
COMMAND_S: Final = 120
KNOWN_S: Final = 90
STORY_S: Final = 1_200
STATUS: Final = re.compile(r"^(?P<command>.*?)(?:  # (?P<status>\d): .*)?$")

pytestmark = pytest.mark.matrix(subject="Runbooks", against="a local stack")

Step = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunbookCommand:
    """A command of a page; of none where a test gives it of itself."""

    page: str = ""
    part: str
    words: tuple[str, ...]
    status: int


def commands(page: str) -> list[RunbookCommand]:
    """Return the commands of a page, with the part in which each stands."""
    text = (RUNBOOKS / f"{page}.md").read_text()
    found = []
    for title in PARTS:
        section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        for block in blocks(section):
            for line in block.lines if block.language == "sh" else ():
                match = STATUS.match(line)
                assert match is not None
                words, status = tuple(shlex.split(match["command"])), int(match["status"] or 0)
                found.append(RunbookCommand(page=page, part=title, words=words, status=status))
    return found


def told(stack: Stack, command: RunbookCommand) -> "subprocess.CompletedProcess[str]":
    """Give a command where dc.yaml lies; keep what it said beside the stack's logs."""
    program = Path(sys.executable).parent / command.words[0]
    done = subprocess.run(
        [str(program), *command.words[1:]],
        cwd=stack.folder,
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
        env={**os.environ, "COLUMNS": "110"},
    )
    with (stack.folder / "told.jsonl").open("a") as file:
        line = {
            "page": command.page,
            "words": command.words,
            "status": done.returncode,
            "said": done.stdout + done.stderr,
        }
        file.write(json.dumps(line) + "\n")
    return done


async def give(stack: Stack, command: RunbookCommand) -> None:
    """Give a command and hold its status against the page's."""
    with trio.move_on_after(KNOWN_S if command.part == PARTS[3] else 0) as patience:
        while True:
            with trio.CancelScope(shield=True):
                done = await trio.to_thread.run_sync(told, stack, command)
            if done.returncode == command.status:
                return
            await trio.sleep(1)
    assert patience.cancelled_caught
    pytest.fail(f"{shlex.join(command.words)}: {done.returncode}\n{done.stdout}{done.stderr}")


async def follow(stack: Stack, page: str, before: dict[str, Step] | None = None) -> None:
    """Give a page's commands; ``before`` has what a person does before a part of it."""
    part = ""
    for command in commands(page):
        if command.part != part and before and command.part in before:
            await before[command.part]()
        part = command.part
        await give(stack, command)


def configure(stack: Stack) -> None:
    """Have the stack mirror both ways; take free ports for pages."""
    file = stack.configuration
    config = yaml.safe_load(file.read_text())
    chosen = {"topics": {"include": [f"{TOPIC}.*"]}, "groups": {"include": [".*"]}}
    config["flows"] = [
        {"source": "dc1", "target": "dc2", **chosen},
        {"source": "dc2", "target": "dc1", **chosen},
    ]
    for name in ("mirror_port", "failover_port", "audit_port", "bootstrap_port"):
        config["metrics"][name] = free_port()
    file.write_text(yaml.safe_dump(config))


class Trouble:
    """The stack, and what happens to it."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.file = str(stack.configuration)

    async def start_mirror(self) -> None:
        """Start `mirror run`."""
        await self.stack.start_program("mirror", "mirror", "run", self.file)

    async def stop_mirror(self) -> None:
        """End it and wait."""
        await self.stack.end("mirror")

    async def produce(self, site: str, records: int = 60) -> None:
        """Have an application write to a site."""

        def write() -> None:
            producer = Producer(self.stack.client(site))
            for number in range(records):
                producer.produce(TOPIC, key=str(number), value=b"x" * 100)
            assert producer.flush(30) == 0

        await trio.to_thread.run_sync(write)

    async def delete(self, site: str, topic: str) -> None:
        """Delete a topic of a site."""

        def delete() -> None:
            admin = AdminClient(self.stack.client(site))
            admin.delete_topics([topic])[topic].result(30)

        await trio.to_thread.run_sync(delete)

    async def wait(self, status: int, *words: str) -> None:
        """Return once a command ends with this status."""
        command = RunbookCommand(part=PARTS[3], words=(*words, "dc.yaml"), status=status)
        await give(self.stack, command)

    async def wait_for_state(self, flow: str, state: str) -> None:
        """Return once a partition of the flow is in a state."""
        command = RunbookCommand(part="", words=("mirror", "status", "--json", "dc.yaml"), status=0)
        with trio.fail_after(KNOWN_S):
            while True:
                done = await trio.to_thread.run_sync(told, self.stack, command)
                flows = json.loads(done.stdout)["flows"] if done.stdout else []
                states = [
                    one["state"]
                    for each in flows
                    if each["flow"] == flow
                    for one in each["partitions"]
                ]
                if state in states:
                    return
                await trio.sleep(1)

    async def lose_memory(self) -> None:
        """Wipe the witness."""

        def wipe() -> None:
            secret = (self.stack.folder / WITNESS_SECRET).read_text().strip()
            client = KazooClient(
                self.stack.witness.address, auth_data=[("digest", f"kafka-dr:{secret}")]
            )
            client.start()
            try:
                for child in client.get_children("/"):
                    if child != "zookeeper":
                        client.delete(f"/{child}", recursive=True)
            finally:
                client.stop()
                client.close()

        await trio.to_thread.run_sync(wipe)


@asynccontextmanager
async def run_trouble(folder: Path) -> AsyncIterator[Trouble]:
    """Run a stack at work: dc1 is active and mirrored, `failover serve` watches."""
    folder.mkdir()
    async with run_stack(folder, FREE) as stack:
        configure(stack)
        await trio.to_thread.run_sync(create_topic, stack.client("dc1"), TOPIC, 3)
        trouble = Trouble(stack)
        await trouble.produce("dc1")
        await trouble.start_mirror()
        await stack.start_program("failover", "failover", "serve", trouble.file)
        await trouble.wait(0, "failover", "plan", "dc2")
        yield trouble


async def test_the_commands_of_all_runbooks_do_what_the_pages_say(tmp_path: Path) -> None:
    with trio.fail_after(STORY_S):
        async with run_trouble(tmp_path / "stack") as trouble:
            stack = trouble.stack
            await follow(stack, "brokers")
            await follow(stack, "mirror")
            await follow(stack, "serve")
            await follow(stack, "planned-switch")
            await follow(stack, "audit")
            await trouble.produce("dc2")
            await trouble.wait(0, "failover", "plan", "dc1")
            await follow(stack, "failback")
            await trouble.wait(0, "failover", "plan", "dc2")
            await follow(stack, "rehearsal")
            await lose_the_map(trouble)
            await lose_the_witness(trouble)
            await lose_the_site(trouble)
            await lose_the_records(trouble)


async def lose_the_map(trouble: Trouble) -> None:
    await trouble.stop_mirror()
    await trouble.delete("dc2", "dc1.offset-map.internal")
    await follow(trouble.stack, "map-lost", {PARTS[3]: trouble.start_mirror})


async def lose_the_witness(trouble: Trouble) -> None:
    await trouble.lose_memory()
    await follow(trouble.stack, "witness-lost")
    await trouble.wait(0, "failover", "plan", "dc2")


async def lose_the_site(trouble: Trouble) -> None:
    """dc1 takes records that the mirror does not bring, and is gone; later it comes back."""
    stack = trouble.stack
    await trouble.stop_mirror()
    await trouble.produce("dc1")
    await stack.kill_site("dc1")
    await trouble.start_mirror()
    await follow(stack, "site-lost")
    await trouble.produce("dc2")
    await stack.start_site("dc1")
    await trouble.wait_for_state("dc2->dc1", "target diverged")
    await follow(stack, "diverged")


async def lose_the_records(trouble: Trouble) -> None:
    """dc1 comes back empty, while dc2 is active."""
    await trouble.stop_mirror()
    for topic in (TOPIC, f"{TOPIC}.diverged"):
        await trouble.delete("dc1", topic)
    await follow(trouble.stack, "refill", {PARTS[3]: partial(trouble.start_mirror)})


@pytest.mark.parametrize("page", sorted(RUNBOOKS.glob("*.md")), ids=lambda page: str(page.stem))
def test_a_runbook_has_its_five_parts(page: Path) -> None:
    titles = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)
    assert tuple(titles) == (() if page.stem == "index" else PARTS)
