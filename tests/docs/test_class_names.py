"""One name, one thing: a class name stands for one thing in all that we install."""

import re
from collections import defaultdict
from typing import Final

from tests.docs.pages import ROOT

PACKAGES: Final = (
    "wire",
    "runtime",
    "offset_translation",
    "broker",
    "mirror",
    "failover",
    "spark_audit",
    "demo",
)
CLASS: Final = re.compile(r"^class ([A-Z]\w*)", re.MULTILINE)
MESSAGES: Final = ROOT / "wire" / "messages"
"""Structures within a message have Kafka's names there, message by message."""
ONE_THING_IN_SEVERAL_FILES: Final = {
    "AbortedTransaction": "Kafka's, in a broker's index and in an answer to Fetch",
    "AuthenticationFailed": "what a broker refuses, and what its client is told",
    "Cluster": "of Kafka's brokers: as its controller knows it, and as a client does",
    "CommandFailed": "a command's one line of what went wrong",
    "Connection": "between a broker and a client, at either end",
    "FetchSession": "KIP-227's, at either end",
    "Host": "what a part of a broker uses of its node",
    "LastLook": "what a file held when it was looked at last",
    "LogUnreadable": "a log cannot be read to its end",
    "Member": "of a group of Kafka's: of either protocol, and as a client is shown it",
    "MetadataCache": "the cluster as it was told last, at a broker and at a client",
    "OpenTransaction": "Kafka's, as a partition's leader tells it",
    "PartitionView": "an entry of MetadataCache",
    "Ports": "where the parts of a site listen",
    "Seal": "of the map: as it is stored, and as an audit reads it",
    "TopicIdPartition": "Kafka's, of topics by name and of topics by id alone",
    "TopicView": "an entry of MetadataCache",
    "UnknownKey": "of an internal topic's record, of a version or a kind not known here",
}


def test_no_class_name_stands_for_two_things() -> None:
    files = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not path.is_relative_to(MESSAGES):
                for name in CLASS.findall(path.read_text()):
                    files[name].append(str(path.relative_to(ROOT)))
    repeated = {name: where for name, where in files.items() if len(where) > 1}
    assert set(repeated) == set(ONE_THING_IN_SEVERAL_FILES), repeated
