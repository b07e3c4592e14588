"""`make profile WHAT=mirror|broker`: a flame graph of our own process under the base workload.

What costs most is printed as well, and kept beside the picture.

py-spy looks at the process from outside, a few hundred times a second, and counts the looks at
which Python code ran: one that waits, for the kernel or for a processor, is not its cost. What the
kernel did for it is told beside the picture. On Linux looking takes the right to trace, which the
process's own user has where ptrace_scope is 0, and root always.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import trio

from tests.bench.measure.ledger import Ledger, RunFailed, expected_faults, reason_of, say
from tests.bench.measure.machine import ROOT
from tests.bench.measure.processes import user_and_kernel
from tests.bench.measure.results import OURS
from tests.bench.measure.workloads import BASE, MIB, Workload, stored_mb
from tests.bench.rows.catching_up import watch
from tests.bench.stage.clusters import Stage, apache_stage, bundled_stage, run_bundled
from tests.bench.stage.filling import drain, fill
from tests.bench.stage.served import create_topic
from tests.bench.tops import costs, frames_of, table

MEGABYTES: Final = 2048
SAMPLES_PER_S: Final = 250
PATIENCE_S: Final = 60
NO_PICTURE: Final = 2
BEGIN: Final = 0.05
"""The mirror is looked at from here on: its start is another story."""


class ProfilerFailed(RunFailed):
    """py-spy did not write its picture; the message has its own words."""


@contextmanager
def profiled(pid: int, picture: Path) -> Iterator[None]:
    """Look at a process during the block and leave a flame graph. Raises ProfilerFailed."""
    py_spy = Path(sys.executable).with_name("py-spy")
    command = [str(py_spy), "record", "--pid", str(pid), "--output", str(picture)]
    command += ["--rate", str(SAMPLES_PER_S), "--duration", "unlimited", "--nonblocking", "--gil"]
    picture.unlink(missing_ok=True)
    profiler = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    began = user_and_kernel(pid)
    try:
        yield
        ended = user_and_kernel(pid)
        user_s, kernel_s = ended[0] - began[0], ended[1] - began[1]
        say(f"processor time: {user_s:.2f} s of its own, {kernel_s:.2f} s in the kernel")
    finally:
        profiler.send_signal(signal.SIGINT)
        said, _ = profiler.communicate(timeout=PATIENCE_S)
    if not picture.exists():
        raise ProfilerFailed(f"py-spy: {said.decode(errors='replace').strip()}")


def profile_mirror(folder: Path, workload: Workload, picture: Path) -> None:
    """Mirror a full topic between two Apache Kafka brokers, or bundled ones without those."""
    data_mb = stored_mb([workload])

    def tell(fault: BaseException) -> None:
        say(f"between bundled brokers, as Apache Kafka cannot be had: {reason_of(fault)}")

    with Ledger().started(apache_stage(folder / "apache", data_mb), tell) as stage:
        if stage is not None:
            _profile_mirror(stage, workload, picture)
            return
    with bundled_stage(folder / "bundled", data_mb) as bundled:
        _profile_mirror(bundled, workload, picture)


def profile_broker(folder: Path, workload: Workload, picture: Path) -> None:
    """Write a topic to one bundled broker and read it."""
    with run_bundled(folder, "profiled") as broker:
        [pid] = broker.pids.values()
        create_topic(broker, workload.topic, workload.partitions)
        each = workload.records_per_batch * workload.batches_per_partition
        with profiled(pid, picture):
            trio.run(fill, broker, workload.topic, workload)
            trio.run(drain, broker, workload.topic, [each] * workload.partitions)


def _profile_mirror(stage: Stage, workload: Workload, picture: Path) -> None:
    create_topic(stage.source, workload.topic, workload.partitions)
    trio.run(fill, stage.source, workload.topic, workload)
    names = stage.next_names()
    mirror = stage.mirror(OURS, names, [workload.topic])
    mirror.start()
    try:
        trio.run(watch, stage.target, workload.topic, workload, mirror.pid, BEGIN)
        with profiled(mirror.pid, picture):
            trio.run(watch, stage.target, workload.topic, workload, mirror.pid)
    finally:
        mirror.kill()


PROFILES: Final[Mapping[str, Callable[[Path, Workload, Path], None]]] = {
    "mirror": profile_mirror,
    "broker": profile_broker,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Profile what the command line asks for; exit status 0, or 2 when there is no picture."""
    parser = argparse.ArgumentParser(prog="profile", description="Flame graphs of our processes.")
    parser.add_argument("what", choices=sorted(PROFILES))
    parser.add_argument("--megabytes", type=int, default=MEGABYTES, metavar="N")
    options = parser.parse_args(arguments)
    picture = ROOT / "build" / f"profile-{options.what}.svg"
    picture.parent.mkdir(exist_ok=True)
    workload = replace(BASE, data_bytes=options.megabytes * MIB)
    faults: list[Exception] = []
    with (
        expected_faults(faults.append),
        tempfile.TemporaryDirectory(prefix="profile-", dir=picture.parent) as folder,
    ):
        PROFILES[options.what](Path(folder), workload, picture)
    for fault in faults:
        sys.stderr.write(f"profile: {reason_of(fault)}\n")
        return NO_PICTURE
    lines = table(costs(frames_of(picture.read_text())))
    print("\n".join(lines), flush=True)
    picture.with_suffix(".txt").write_text("\n".join(lines) + "\n")
    say(str(picture))
    return 0


if __name__ == "__main__":
    sys.exit(main())
