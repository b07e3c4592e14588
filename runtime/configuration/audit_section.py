"""What the nightly audit takes and where it keeps its results: the section `audit`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from runtime.configuration.reading.section import Section
from wire.values import frozen

_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]*:")
"""What an address of Hadoop's begins with, and a folder does not."""

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "audit.output": "The folder of the results. Later audits compare with what lies there, so "
        "keep it.",
        "audit.results": "Where `spark-audit run` keeps the verdict and the findings of each night "
        "as Parquet as well: a folder, or an address as Hadoop writes it (`hdfs:`, `s3a:`).",
        "audit.driver_memory": "The memory of Spark's driver.",
        "audit.cores": "The processors that Spark may take.",
        "audit.master": "The master of a Spark cluster, as Spark writes it: `spark://host:7077`, "
        "`yarn`, `k8s://https://host:6443`. Without it Spark runs inside of the program.",
        "audit.in_flight_limit_ms": "How long a record may wait for the mirror. One that has "
        "waited longer when the audit looks is a finding.",
        "audit.evidence.<name>": "Where `spark-audit digest NAME` keeps what it has read of a "
        "cluster: a folder, or an address as Hadoop writes it (`s3a://bucket/dc1`). An audit reads "
        "only what is new since.",
        "audit.reread_nights": "In so many days `spark-audit digest` reads all that it remembers "
        "again, a part each night.",
    }
)
"""What each key is for."""


@frozen
class AuditConfig:
    """Where the audit writes its results, and how much of the machine it takes."""

    output: Path
    results: str | None
    """A path as Hadoop names it, for verdicts and findings as Parquet too."""
    driver_memory: str
    cores: int
    master: str | None
    in_flight_limit_ms: int
    """What has not been mirrored for longer is a finding."""
    evidence: Mapping[str, str]
    """By cluster, the path of what its nights remember, as Hadoop names it."""
    reread_nights: int
    """In so many nights all that is remembered is read again."""

    def of_set(self, name: str) -> "AuditConfig":
        """Return the same for a named set of topics, which has results and evidence of its own."""
        evidence = {cluster: f"{place}/sets/{name}" for cluster, place in self.evidence.items()}
        results = None if self.results is None else f"{self.results}/sets/{name}"
        output = self.output / "sets" / name
        return replace(self, output=output, results=results, evidence=evidence)


def read_audit(section: Section, path: Path, clusters: Iterable[str]) -> AuditConfig:
    """Take the whole section of the file at `path`; raises ConfigurationError."""
    output = section.string("output", "audit")
    if _ADDRESS.match(output):
        section.complain("output", f"{output!r} is no folder of this machine; see audit.results")
    results = section.optional_string("results")
    memory = section.string("driver_memory", "1g")
    if not re.fullmatch(r"[1-9][0-9]*[mg]", memory):
        section.complain("driver_memory", f"{memory!r} is not like 512m or 2g")
    audit = AuditConfig(
        output=path.parent / output,
        results=None if results is None else _hadoop_path(results, path),
        driver_memory=memory,
        cores=section.integer("cores", 2, least=1, most=1024),
        master=section.optional_string("master"),
        in_flight_limit_ms=section.integer("in_flight_limit_ms", 3_600_000, least=1_000),
        evidence=section.attempt(
            lambda: _evidence(section.section("evidence", required=False), path, clusters), {}
        ),
        reread_nights=section.integer("reread_nights", 90, least=1, most=10_000),
    )
    section.finish()
    return audit


def _evidence(section: Section, path: Path, clusters: Iterable[str]) -> Mapping[str, str]:
    """Return the place of each cluster's evidence; of a file, one beside the configuration."""
    places: dict[str, str] = {}
    for name in clusters:
        place = section.optional_string(name)
        if place is not None:
            places[name] = _hadoop_path(place, path)
    section.finish()
    return places


def _hadoop_path(place: str, path: Path) -> str:
    """Return an address as it is, and a folder as one beside the configuration."""
    return place if _ADDRESS.match(place) else str(path.parent.absolute() / place)
