"""A file of two sites with sets of topics, as the programs take it set by set."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from runtime.configuration.config import Configuration, load
from runtime.configuration.name_patterns import NamePattern
from runtime.configuration.topic_sets import TopicSet, TopicSets

FILE: Final = """
clusters: {dc1: {bootstrap: "a:1"}, dc2: {bootstrap: "b:1"}}
flows:
  - {source: dc1, target: dc2, client_quotas: true, mirrormaker: {heartbeats: true}}
  - {source: dc2, target: dc1}
coordination: {zookeeper: "w:1", path: /dr}
failover: {initial_active: dc1}
audit: {output: /results, evidence: {dc1: "s3a://bucket/dc1"}}
"""
SETS: Final = TopicSets(
    named=(
        TopicSet(name="payments", patterns=(NamePattern("pay.", is_prefix=True),)),
        TopicSet(name="stock", patterns=(NamePattern("stock"),)),
    )
)


def with_sets(folder: Path, sets: TopicSets = SETS) -> Configuration:
    """Return the whole file, with these sets in it."""
    file = folder / "dc.yaml"
    file.write_text(FILE)
    return having(load(file), sets)


def having(configuration: Configuration, sets: TopicSets) -> Configuration:
    """Return a whole file with these sets in it."""
    return replace(configuration, failover=replace(configuration.failover, sets=sets))
