"""`make run`: the service on this machine, with traffic, until Ctrl-C."""

import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import trio

from demo.folder import empty_folder
from demo.measure import create_topic
from demo.stack import GROUP, PARTITIONS, TOPIC, WELL_KNOWN, Stack, StackFailed, run_stack
from runtime.configuration.config import load

RATE: Final = 200
RESTART_DELAY_S: Final = 1.0


async def run(folder: Path) -> None:
    """Start everything in an empty `folder`, say what is where, and stay; raises StackFailed."""
    started = time.monotonic()
    print("starting two clusters of three brokers, three ZooKeepers, the mirror and traffic ...")
    with empty_folder(folder):
        async with run_stack(folder, WELL_KNOWN) as stack:
            client = stack.client("dc1")
            await trio.to_thread.run_sync(create_topic, client, TOPIC, PARTITIONS)
            programs = _programs(stack)
            for name, arguments in programs.items():
                await stack.start_program(name, *arguments)
            await _wait_ready(stack)
            print(_directions(stack, time.monotonic() - started), flush=True)
            await _stay(stack, programs)


def _programs(stack: Stack) -> dict[str, Sequence[str]]:
    """Return the command of each program by its name."""
    file = str(stack.configuration)
    board = ["--deliveries", str(stack.folder / "deliveries.csv")]
    board += ["--commits", str(stack.folder / "commits.csv")]
    replay = ("--forever", "--rate", str(RATE), "--ledger", str(stack.folder / "acknowledged.csv"))
    return {
        "mirror": ("mirror", "run", file),
        "failover": ("failover", "serve", file),
        "audit": ("spark-audit", "metrics", file),
        "consumer": ("demo.consumer", "--config", file, *board),
        "producer": ("demo.producer", "--config", file, *replay),
    }


async def _wait_ready(stack: Stack) -> None:
    """Return when the first record has gone all the way to the consumer."""
    deliveries = stack.folder / "deliveries.csv"
    while not (deliveries.exists() and deliveries.stat().st_size):
        _require_all(stack)
        await trio.sleep(0.05)


async def _stay(stack: Stack, programs: Mapping[str, Sequence[str]]) -> None:
    """Start again what ends by itself; a site that ends stays lost, as in a disaster."""
    while True:
        for name in [name for name, child in stack.children.items() if child.poll() is not None]:
            how = _how_it_ended(stack, name)
            await stack.end(name)
            if name in programs:
                print(f"{name} ended {how}; starting it again", flush=True)
                await stack.start_program(name, *programs[name])
            else:
                print(f"{name} is lost: it ended {how}", flush=True)
        await trio.sleep(RESTART_DELAY_S)


def _how_it_ended(stack: Stack, name: str) -> str:
    status = stack.children[name].returncode or 0
    if status < 0:  # it had no time for last words
        return f"by {signal.Signals(-status).name}"
    return f"with status {status}: {stack.last_words(name)}"


def _require_all(stack: Stack) -> None:
    for name, process in stack.children.items():
        if process.poll() is not None:
            raise StackFailed(f"{name} ended: {stack.last_words(name)}")


def _directions(stack: Stack, seconds: float) -> str:
    bin_folder = ".venv/bin"
    file = _from_here(stack.configuration)
    metrics = load(file).metrics
    return f"""
ready after {seconds:.1f} s; Ctrl-C stops everything

  dc1         {stack.sites["dc1"].bootstrap}
  dc2         {stack.sites["dc2"].bootstrap}
  witness     {stack.witness.address} (ZooKeeper)
  traffic     topic {TOPIC!r}, {RATE} departures a second, group {GROUP!r}
  metrics     mirror    http://{metrics.host}:{metrics.mirror_port}/metrics
              failover  http://{metrics.host}:{metrics.failover_port}/metrics
              audit     http://{metrics.host}:{metrics.audit_port}/metrics
              brokers   {_broker_metrics(stack)}
  logs, data  {_from_here(stack.folder)}

  what it does      {bin_folder}/mirror status {file} --watch
  move to dc2       {bin_folder}/failover promote dc2 {file}
  who is active     {bin_folder}/failover status {file}
  prove it          {bin_folder}/spark-audit run {file}
"""


def _broker_metrics(stack: Stack) -> str:
    ports = [
        str(broker["metrics_port"])
        for _, site in sorted(stack.sites.items())
        for broker in site.ready["brokers"]
    ]
    return f"http://127.0.0.1:{{{','.join(ports)}}}/metrics"


def _from_here(path: Path) -> Path:
    """Return the path as one types it in this folder."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
