"""A configuration file whose first cluster has the lines that a test wants."""

from pathlib import Path

from runtime.configuration.config import ClusterConfig, load

FILE = """\
clusters:
  dc1:
    bootstrap: 127.0.0.1:9092
    {security}
  dc2: {{bootstrap: "127.0.0.1:9192"}}
flows:
  - source: dc1
    target: dc2
coordination: {{zookeeper: "127.0.0.1:2183"}}
"""


def cluster(folder: Path, *security: str) -> ClusterConfig:
    """Load a file whose first cluster has these lines."""
    file = folder / "dc.yaml"
    file.write_text(FILE.format(security="\n    ".join(security)))
    return load(file).clusters["dc1"]
