"""The page of a benchmark: what matters first, tables, the machine. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tests.bench.measure.results import (
    APACHE,
    AUDIT_CPU,
    AUDIT_FAR,
    AUDIT_INCREMENT,
    AUDIT_RATE,
    AUDIT_RECORDS,
    AUDIT_REREAD,
    AUDIT_RSS,
    AUDIT_START,
    BROKER_CONSUME,
    BROKER_P99,
    BROKER_PRODUCE,
    BROKER_RSS,
    CONNECTOR,
    DUPLICATES,
    MIRROR_CPU,
    MIRROR_P50,
    MIRROR_P99,
    MIRROR_RATE,
    MIRROR_RSS,
    MIRROR_WARM_CPU,
    MISSED,
    MM2_DEFAULT,
    MM2_TUNED,
    OURS,
    REREAD,
    UNITS,
    has_no_figure,
)
from tests.bench.page.charts import number

CHARTS: Final = "benchmarks"
"""The folder beside the page."""
NOTES: Final = "notes"
"""Key of what a reader of these very figures has to know, where there is such."""
RUN: Final = "run "
"""What the keys of the machines of further runs begin with."""

TITLES: Final[Mapping[str, str]] = {
    MIRROR_CPU: "Processor time of the mirror for a GiB",
    MIRROR_WARM_CPU: "The same, of the last half only",
    MIRROR_RATE: "Speed of the mirror on a full topic",
    MIRROR_RSS: "Memory of the mirror, at its highest",
    MIRROR_P50: "Latency through the mirror, median",
    MIRROR_P99: "Latency through the mirror, 99th percentile",
    DUPLICATES: "Records twice on the target after SIGKILL and restart",
    REREAD: "Records that a group reads again after failover",
    BROKER_PRODUCE: "Broker: writing",
    BROKER_CONSUME: "Broker: reading",
    BROKER_P99: "Broker: latency, 99th percentile",
    BROKER_RSS: "Broker: memory behind each load",
    AUDIT_RATE: "Audit: data of both logs for a second of a processor",
    AUDIT_RECORDS: "Audit: records of both logs for a second of a processor",
    AUDIT_START: "Audit: the start, which is the same for any data",
    AUDIT_RSS: "Audit: memory of the process that reads, at its highest",
    AUDIT_CPU: "Audit: how it grows with the data, behind the start",
    AUDIT_INCREMENT: "Audit: a night with evidence, in percent of a full one",
    AUDIT_FAR: "Audit: how fast a worker reads a site nearby and far away",
    AUDIT_REREAD: "Audit: what a night reads again against rotten bits, in percent of a full one",
}
MORE_IS_BETTER: Final = frozenset(
    {MIRROR_RATE, BROKER_PRODUCE, BROKER_CONSUME, AUDIT_RATE, AUDIT_RECORDS, AUDIT_FAR}
)
MARKS: Final = ("3 brokers", "one core")
RIVALS: Final = (MM2_DEFAULT, MM2_TUNED, APACHE, CONNECTOR)

HEAD: Final = """\
# Benchmarks

Made by `make bench`; do not edit. Ours beside Apache Kafka's MirrorMaker 2 and Apache Kafka's
brokers: the same machine, the same data, the same run.
"""

SYSTEMS: Final = """\
## What was measured, and how

| system | what it is |
|---|---|
| `ours` | `mirror run`, or `broker run`, of this project |
| `ours-in-python` | `mirror run` without its chunk kernel: `chunk_kernel: false` |
| `ours-earlier` | `mirror run` of an earlier commit: `make bench AGAINST=REV` |
| `mm2-default` | MirrorMaker 2 in dedicated mode, with the defaults it comes with |
| `mm2-tuned` | the same, tuned for throughput: 8 tasks, polls of 10,000 records and 10 MiB per \
partition, producer batches of 512 KiB with 20 ms of linger, idempotent with 5 in flight, \
checkpoints and group sync each second |
| `relay` | takes bytes from one socket, gives them to another, and does nothing else: the limit |
| `apache-kafka` | an Apache Kafka broker (KRaft) |
| `spark-connector` | Spark's own Kafka connector reads both logs, and a full outer join compares \
partition, SHA-1 of key, value and time of each record, and how often it is there |
| `reader` | fetches both logs and looks at each batch's header, and does nothing else: the limit \
of an audit |
| `direct` | a bundled broker without `failover bootstrap` between it and its clients: the limit \
of forwarding |

- Figures are minimum / **median** / maximum over the rounds. Each round starts all systems anew. A
  ratio is taken within a round, and then over the rounds. MB are 10^6 and GiB 2^30 bytes of record
  values before compression.
- This harness leaves no figure out because the machine was busy. The load average at the start and
  at the end stands under "Machine and versions". What runs beside a benchmark changes what every
  system takes by half or more, and a ratio within a round far less.
- A round that ran out of time, or whose system did not start, has no figure. The row says why.
- A workload is the size of a record, the codec, what the producer put into a batch, and the number
  of partitions (`12p`); each differs from the first one in one respect. Values are words, which
  compress about as well as JSON does.
- Processor time is what the kernel accounts to the process itself, all threads, user and system:
  `mirror_cpu_s_per_gib` from its start until the last record of a full topic is on the target. That
  is 4 GiB; 1.5 GiB of single records and 1.1 GiB of 100 B. Starting takes MirrorMaker about 11
  CPU-s and ours 0.4, and Java goes on compiling for more than 2 GiB. What a mirror that has run for
  long takes is nearer to `mirror_warm_cpu_s_per_gib`, of the last half of the records.
- Mirrors copy the same topic by turns: each starts alone and moves the first 2 %, and then works
  for up to a second, or a tenth of the records, while the others are stopped (SIGSTOP), until
  all is moved. A mirror that is done leaves, and its copy is deleted. The first 50 ms of a turn do
  not count for its speed: what lay in buffers comes at once.
- Single brokers are written to and read by turns as well, five times in a round; the median counts.
  Latencies, and three brokers, are taken one system after the other, in an order that changes.
  Kills and re-reads, which are counted and not timed, are done by all systems at once.
- Brokers write to the disk, sync none, and have worked before, until Java had compiled what
  matters: three copies by all mirrors, five before mirrors on one processor, or twelve passes of a
  single broker. Apache Kafka's brokers and MirrorMaker have the heaps (1 and 2 GB) and the garbage
  collector's settings that their start scripts give them.
- A single broker is written and read by this harness with ready-made batches, and latency is from
  the producer to a consumer. "3 brokers, rf 3" are written and read by librdkafka with acks=all and
  two in-sync replicas at least; "written only" is the time until a record is acknowledged.
- Memory of a mirror is compared by the highest of all workloads: Java's heap becomes one of two
  sizes in each start, 1.5 or 1.75 GB, and the ratios of single workloads would be as much luck.
- Latency is from the moment a record was due to be sent until a consumer of the target has it;
  a late answer does not delay the records behind it.
- Records twice and records read again are counts, and ours is meant to be 0. Then the ratio is 0,
  whatever the other one's count is, which is a matter of luck between 0 and its bound; where the
  other one counts 0 as well there is no ratio. Look at the counts. A group's position is looked at
  after the mirror has come to rest, so what was written since the last sync is not in it.
- Memory is that of the brokers' own processes, all three together where there are three: Apache
  Kafka's hold its controllers, ours have a ZooKeeper beside them (about 90 MB).
- "one core": the mirror may use one processor only, brokers and harness use all. "80 ms away": the
  source is behind a process that keeps each byte back for 40 ms in each direction, 41 at most.
- An audit and the connector compare the same logs on two bundled clusters by turns, workload by
  workload, each in one Spark on two processors that is started anew in each round. What counts is
  the processor time of the whole process tree, JVM and workers. `audit_start_cpu_s` is the start
  with a first topic of 4,000 records. Each topic has a fixed price too, the median of three more
  audits of that small topic, which rates leave out. No two records of a workload are alike. A rate
  that the fixed price varies by more than has no figure.
- What reads is a Python worker of ours, and the JVM of the connector. Its heap may grow to 3 GB.
  Memory is the peak that the kernel has counted (VmHWM) since the topic's turn began. Two rows are
  of logs that differ: the beginning is gone on one side, as behind its retention, and every record
  has another time, in as many records as a worker takes one by one.
- `audit_increment_percent`: both logs have grown by 1 %; the digests of both sites, which read
  that, and the audit that takes their evidence, beside an audit that reads all. Each part of 65,536
  offsets is read again once in 90 nights. None has its turn in that night; `audit_reread_percent`
  is a night in which one has, and nothing is new. Everything runs in one process without Spark; the
  price of a small topic is left out.
- `audit_far_mb_s`: one worker's reading of a topic, whose site is behind the process that keeps
  bytes back in both rows, "near" for no time. Connecting is in it, a few round trips.
- MirrorMaker writes without compression unless told otherwise, which neither setting does; ours
  writes the bytes that it read.

`make bench` measures the parts `mirror`, `broker`, `offsets` and `audit` in three rounds; `ONLY=`
picks one, or `replicated` (three brokers), `drain` (one core, and distance), `audit-growth` or
`forward`. `QUICK=1` takes two rounds of one workload, `RUNS=5` more rounds.
`.venv/bin/python -m tests.bench --help` says how long each takes. `make profile
WHAT=mirror|broker` draws flame graphs of ours under `build/`.
"""

NOTHING_YET: Final = """\
No full run has been recorded yet: `make bench` measures and writes this page.
"""


def page(content: Mapping[str, Any]) -> str:
    """Return the page."""
    if not content["rows"]:
        return f"{HEAD}\n{SYSTEMS}\n{NOTHING_YET}"
    machine = dict(content["machine"])
    harness = machine.pop("harness", {})
    parts = [HEAD, _commits(content), _in_short(content), SYSTEMS]
    parts += [
        _section(bench, rows, _of(bench, content["ratios"]))
        for bench in UNITS
        if (rows := _of(bench, content["rows"]))
    ]
    parts += [_facts("The harness itself", harness), _facts("Machine and versions", machine)]
    if notes := content.get(NOTES):
        parts.append(
            "\n".join(["## Notes on these figures", "", *(f"- {each}" for each in notes), ""])
        )
    return "\n".join(parts)


def in_words(ratio: float) -> str:
    """Return what a ratio of ours to another means: `4.2 times less`, `as much`."""
    if ratio == 0:
        return "none"
    factor = max(ratio, 1 / ratio)
    if factor < 1.05:
        return "as much"
    return f"{factor:.3g} times {'more' if ratio > 1 else 'less'}"


def is_headline(bench: str, workload: str) -> bool:
    """Return whether a workload stands on top of the page, beside the first one of its bench."""
    if bench in {MIRROR_CPU, MIRROR_P50, MIRROR_P99, REREAD, AUDIT_RATE}:
        return True
    return bench != MIRROR_RSS and any(mark in workload for mark in MARKS)


def best_rival(ratios: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the ratio to the one that does best beside ours, whatever its settings; None: nobody.

    Ours against it is the least where more is better, and the most elsewhere.
    """
    rivals = [ratio for ratio in ratios if ratio["to"] in RIVALS]
    if not rivals:
        return None
    sign = 1 if rivals[0]["bench"] in MORE_IS_BETTER else -1
    return min(rivals, key=lambda ratio: sign * float(ratio["median"]))


def _commits(content: Mapping[str, Any]) -> str:
    """Return of which commits the figures are."""
    machine = content["machine"]
    further = [of_run for key, of_run in machine.items() if key.startswith(RUN)]
    commits = [machine["versions"]["this project"], *(each["this project"] for each in further)]
    dates = [machine["date"], *(each["date"] for each in further)]
    each = dict.fromkeys(
        f"`{commit}` ({date.split()[0]})" for commit, date in zip(commits, dates, strict=True)
    )
    more = " Notes on them stand at the end." if content.get(NOTES) else ""
    return f"The figures are of commit {', '.join(each)}.{more}\n"


def _in_short(content: Mapping[str, Any]) -> str:
    lines = ["## In short", "", "Ours beside the best of the others.", ""]
    lines += ["| | workload | ours | other | ours is |", "|---|---|---:|---:|---|"]
    medians = {
        (row["bench"], row["workload"], row["system"]): row["median"] for row in content["rows"]
    }
    for bench in UNITS:
        ratios = _of(bench, content["ratios"])
        for workload in dict.fromkeys(ratio["workload"] for ratio in ratios):
            if workload != ratios[0]["workload"] and not is_headline(bench, workload):
                continue
            best = best_rival([ratio for ratio in ratios if ratio["workload"] == workload])
            if best is None:
                continue
            ours, other = (medians[bench, workload, each] for each in (OURS, best["to"]))
            lines.append(
                f"| {TITLES[bench]} | {workload} | {number(ours)} {UNITS[bench]} "
                f"| {number(other)} ({best['to']}) | **{in_words(best['median'])}** |"
            )
    lines += ["", f"More is better for {_listed(MORE_IS_BETTER)}; less for all else.", ""]
    return "\n".join(lines)


def _listed(benches: Iterable[str]) -> str:
    return " and ".join(f"`{bench}`" for bench in UNITS if bench in benches)


def _section(
    bench: str, rows: Sequence[Mapping[str, Any]], ratios: Sequence[Mapping[str, Any]]
) -> str:
    of_pair = {(ratio["workload"], ratio["to"]): ratio for ratio in ratios}
    better = "more" if bench in MORE_IS_BETTER else "less"
    lines = [f"## {TITLES[bench]}", "", f"`{bench}`, {UNITS[bench]}; {better} is better", ""]
    lines += [f"![{TITLES[bench]}]({CHARTS}/{bench}.svg)", ""]
    lines += [
        "| workload | system | min | **median** | max | ours : this |",
        "|---|---|---:|---:|---:|---:|",
    ]
    lines += [_line(row, of_pair.get((row["workload"], row["system"]))) for row in rows]
    missed = [row for row in rows if MISSED in row]
    notes = [f"- {row['workload']}, {row['system']}: {row[MISSED]}" for row in missed]
    return "\n".join([*lines, *(["", *notes] if notes else []), ""])


def _line(row: Mapping[str, Any], ratio: Mapping[str, Any] | None) -> str:
    start = f"| {row['workload']} | {row['system']} "
    if has_no_figure(row):
        return f"{start}| | {row['median']} | | |"
    figures = [number(row["min"]), f"**{number(row['median'])}**", number(row["max"])]
    of_ours = "" if ratio is None else _ratio(ratio)
    return f"{start}| {' | '.join(figures)} | {of_ours} |"


def _ratio(ratio: Mapping[str, Any]) -> str:
    low, middle, high = (f"{ratio[key]:.3g}" for key in ("min", "median", "max"))
    return f"{low} / **{middle}** / {high}"


def _of(bench: str, entries: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [entry for entry in entries if entry["bench"] == bench]


def _facts(title: str, facts: Mapping[str, Any]) -> str:
    lines = [f"## {title}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in _flat(facts)]
    return "\n".join([*lines, ""])


def _flat(values: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            for inner, inside in _flat(value):
                yield f"{name}: {inner}", inside
        else:
            yield name.replace("_", " "), value
