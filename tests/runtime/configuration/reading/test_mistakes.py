"""All mistakes of a file are told at once, each once, and nothing that only follows from one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.configuration.config import load
from runtime.configuration.reading.mistakes import MOST_SHOWN, ConfigurationError
from tests.properties import examples

GOOD: Final = """\
clusters:
  dc1:
    bootstrap: k1:9092
    security_protocol: SASL_PLAINTEXT
    sasl: {mechanism: PLAIN, username: u, password: p}
    client: {request.timeout.ms: 5000, retry.backoff.ms: 50}
  dc2:
    bootstrap: k2:9092
    security_protocol: SSL
    ssl: {check_hostname: true}
flows:
  - source: dc1
    target: dc2
    topics: {include: ["orders.*"]}
    throttle: {bytes_per_second: 2048, topics: {"orders.*": 4096}}
    names: identical
    fetch_max_bytes: 1048576
    mirrormaker: {interval_ms: 1000}
  - source: dc2
    target: dc1
coordination:
  zookeeper: w:2181
  path: /kafka-dr
  session_timeout_ms: 6000
  auth: {username: u, password: p}
failover:
  initial_active: dc1
  standby: closed
  loss_budget: {records: 5}
  automatic: {voters: {a: dc1, b: dc2, c: office}, after_ms: 60000}
  hooks:
    - {name: dns, before: fence, command: [dns], attempts: 3}
    - {name: page, after: switch, command: [page]}
  canary: {topic: beats, interval_ms: 1000}
  bootstrap:
    listen: 127.0.0.1:9000
    forward: {host: h, ports: 9100-9110}
audit:
  driver_memory: 1g
  cores: 2
  evidence: {dc1: /e}
metrics:
  host: 0.0.0.0
  username: u
  password: p
  mirror_port: 9401
"""

MISTAKES: Final[Mapping[str, tuple[str, str]]] = {
    "clusters.dc1.bootstrap": ("k1:9092", "k1"),
    "clusters.dc1.sasl.mechanism": ("mechanism: PLAIN,", "mechanism: PLAN,"),
    "clusters.dc1.client.request.timeout.ms": ("request.timeout.ms: 5000", "request.timeout.ms: 1"),
    "clusters.dc1.client.retry.backoff.ms": ("retry.backoff.ms: 50", "retry.backoff.ms: x"),
    "clusters.dc2.security_protocol": ("security_protocol: SSL", "security_protocol: SSLL"),
    "flows[0].source": ("source: dc1", "source: dc3"),
    "flows[0].target": ("target: dc2\n    topics", "target: 2\n    topics"),
    "flows[0].topics.include": ('["orders.*"]', '["orders.("]'),
    "flows[0].throttle.bytes_per_second": ("bytes_per_second: 2048", "bytes_per_second: many"),
    "flows[0].throttle.topics.orders.*": ("4096", "4"),
    "flows[0].nanes": ("names: identical", "nanes: identical"),
    "flows[0].fetch_max_bytes": ("fetch_max_bytes: 1048576", "fetch_max_bytes: 1"),
    "flows[0].mirrormaker.interval_ms": (
        "mirrormaker: {interval_ms: 1000}",
        "mirrormaker: {interval_ms: 1}",
    ),
    "flows[1].target": ("target: dc1\ncoo", "target: dc2\ncoo"),
    "coordination.zookeeper": ("w:2181", "w:x"),
    "coordination.path": ("path: /kafka-dr", "path: kafka-dr"),
    "coordination.session_timeout_ms": ("timeout_ms: 6000", "timeout_ms: 60"),
    "coordination.auth.username": ("auth: {username: u,", 'auth: {username: "u:v",'),
    "failover.initial_active": ("initial_active: dc1", "initial_active: dc4"),
    "failover.standby": ("standby: closed", "standby: shut"),
    "failover.loss_budget.records": ("records: 5", "records: -1"),
    "failover.automatic.voters.c": ("c: office", "c: dc1"),
    "failover.automatic.after_ms": ("after_ms: 60000", "after_ms: 6"),
    "failover.hooks[0].attempts": ("attempts: 3", "attempts: 0"),
    "failover.hooks[1].after": ("after: switch", "after: swich"),
    "failover.canary.topic": ("topic: beats", 'topic: ""'),
    "failover.canary.interval_ms": (", interval_ms: 1000}\n  bo", ", interval_ms: 1}\n  bo"),
    "failover.bootstrap.listen": ("listen: 127.0.0.1:9000", "listen: nowhere"),
    "failover.bootstrap.forward.ports": ("9100-9110", "9100-9000"),
    "audit.driver_memory": ("driver_memory: 1g", "driver_memory: much"),
    "audit.evidence.dc3": ("dc1: /e", "dc3: /e"),
    "metrics.username": ("  username: u", '  username: "u:v"'),
    "metrics.mirror_port": ("mirror_port: 9401", "mirror_port: 94010"),
    "metricks": ("metrics:", "metricks: {}\nmetrics:"),
}
"""By the key that is to be named: what stands in the file, and the mistake in its place."""

HIDDEN: Final[Mapping[str, tuple[str, ...]]] = {
    "failover.bootstrap.listen": ("failover.bootstrap.forward.ports",),
}
"""By a key, those whose mistakes hide its own: it is judged beside them alone."""


def complaints(folder: Path, mistakes: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the keys that are named for a file with these mistakes, in the order of lines."""
    text = GOOD
    for old, new in mistakes.values():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file = folder / "dc.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load(file)
    lines = str(caught.value).splitlines()
    numbers = [int(line.removeprefix(f"{file}:").partition(":")[0]) for line in lines]
    assert numbers == sorted(numbers)
    return [line.split(": ")[1] for line in lines]


def expected(chosen: set[str]) -> set[str]:
    """Return the keys of those mistakes that can be seen beside each other."""
    return {key for key in chosen if chosen.isdisjoint(HIDDEN.get(key, ()))}


def test_the_file_without_a_mistake_is_read(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(GOOD)
    assert load(file).failover.initial_active == "dc1"


@pytest.mark.parametrize("key", MISTAKES)
def test_one_mistake_is_told_alone(tmp_path: Path, key: str) -> None:
    assert complaints(tmp_path, {key: MISTAKES[key]}) == [key]


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    found = complaints(tmp_path, MISTAKES)
    assert sorted(found) == sorted(expected(set(MISTAKES)))


@settings(max_examples=examples(25, 1_000))
@given(chosen=st.sets(st.sampled_from(sorted(MISTAKES)), min_size=1))
def test_some_mistakes_are_told_and_nothing_that_follows_from_them(
    tmp_path_factory: pytest.TempPathFactory, chosen: set[str]
) -> None:
    folder = tmp_path_factory.mktemp("mistakes")
    found = complaints(folder, {key: MISTAKES[key] for key in chosen})
    assert sorted(found) == sorted(expected(chosen))


def test_a_file_that_is_something_else_has_a_limited_number_of_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(GOOD + "".join(f"key{number}: 1\n" for number in range(MOST_SHOWN + 7)))
    with pytest.raises(ConfigurationError) as caught:
        load(file)
    lines = str(caught.value).splitlines()
    assert len(lines) == MOST_SHOWN + 1
    assert lines[-1] == f"{file}: and 7 more mistakes"


def test_a_key_that_would_write_lines_of_its_own_is_told_in_one(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(GOOD + '"a\\nb\\e[31m": 1\n')
    with pytest.raises(ConfigurationError) as caught:
        load(file)
    assert str(caught.value).endswith(r": a\nb\x1b[31m: unknown key")
