"""The one place that writes a `dc.yaml` for tests; those of its parser write theirs by hand."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

Section: TypeAlias = Mapping[str, Any]
Topics: TypeAlias = str | Sequence[str] | Section
"""A pattern, several, or the whole section."""
NOTHING: Final[Section] = MappingProxyType({})
FREE_PORTS: Final[Section] = {
    "mirror_port": 0,
    "failover_port": 0,
    "audit_port": 0,
    "bootstrap_port": 0,
}
LOGIN: Final[Section] = MappingProxyType({"username": "tests", "password": "of the tests"})
"""As `tests.zookeeper` has it."""
NOWHERE: Final = "127.0.0.1:1"
"""An address where nobody listens."""


def flow(
    source: str = "dc1",
    target: str = "dc2",
    topics: Topics = (),
    more: str = "",
    **settings: Any,
) -> str:
    """Return a flow of these patterns of topics, or with this section; `more` are whole lines."""
    if not isinstance(topics, Mapping):
        topics = {"include": [topics] if isinstance(topics, str) else topics} if topics else {}
    wanted = {"topics": topics} if topics else {}
    lines = [f"{name}: {_written(value)}" for name, value in (wanted | settings).items()]
    lines += [line.strip() for line in more.splitlines()]
    return "\n    ".join([f"  - source: {source}", f"target: {target}", *filter(None, lines)])


def dc_yaml(
    *flows: str,
    dc1: str | Section = NOWHERE,
    dc2: str | Section = NOWHERE,
    witness: str = NOWHERE,
    path: str = "/kafka-dr",
    coordination: Section = NOTHING,
    metrics: Section = FREE_PORTS,
    **sections: Section,
) -> str:
    """Return the text: two sites, by address or by section, and a flow from dc1 unless given."""
    clusters = {"dc1": dc1, "dc2": dc2, **sections.pop("clusters", {})}
    listed = [
        f"  {name}: {_written({'bootstrap': one} if isinstance(one, str) else one)}"
        for name, one in clusters.items()
    ]
    rest = {
        "coordination": {"zookeeper": witness, "path": path, "auth": LOGIN, **coordination},
        **sections,
        "metrics": metrics,
    }
    return "\n".join(
        ["clusters:", *listed, "flows:", *(flows or [flow()])]
        + [f"{name}: {_written(section)}" for name, section in rest.items()]
        + [""]
    )


def _written(value: object) -> str:
    """Return YAML on one line, with names unquoted, so that tests may replace a setting in it."""
    if isinstance(value, Mapping):
        settings = (f"{name}: {_written(one)}" for name, one in value.items() if one is not None)
        return "{" + ", ".join(settings) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_written, value)) + "]"
    return json.dumps(value)
