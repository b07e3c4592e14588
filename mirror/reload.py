"""The part of a configuration read again that a running daemon can take over. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, Final

from runtime.configuration.config import Configuration, FlowConfig, PatternSet
from runtime.configuration.flow_section import SettingsSync
from wire.values import frozen

AT_RUN_TIME: Final = frozenset(
    {
        "topics",
        "throttle",
        "policies",
        "settings",
        "acls",
        "copies_quotas",
        "delete_gone_after_ms",
        "fetch_max_bytes",
        "partition_fetch_bytes",
        "partition_in_flight_bytes",
        "in_flight_bytes",
        "discovery_interval_ms",
        "balance_interval_ms",
        "has_chunk_kernel",
    }
)
"""The fields of a flow that are looked at whenever they are needed."""


@frozen
class Reloaded:
    """The flows as they are from now on, and lines for the log."""

    flows: Mapping[str, FlowConfig]
    taken: tuple[str, ...]
    needs_restart: tuple[str, ...]


def reloaded(old: Configuration, running: Mapping[str, FlowConfig], new: Configuration) -> Reloaded:
    """Compare; ``running`` are the flows as the daemon has them now, by name."""
    flows = dict(running)
    if new.sets != old.sets:
        # A topic that changes its set would be mirrored by nobody, or by two.
        return Reloaded(flows=flows, taken=(), needs_restart=("failover.sets, and all else",))
    taken: list[str] = []
    needs_restart: list[str] = []
    there = {flow.name: flow for one in new.by_set().values() for flow in one.flows}
    for name, flow in running.items():
        if name not in there:
            needs_restart.append(f"flow {name} is not in the file any more")
            continue
        changes: dict[str, Any] = {}
        for key, before, after in _differences(flow, there[name]):
            if key in AT_RUN_TIME:
                changes[key] = after
                taken += (f"flow {name}: {line}" for line in _told(key, before, after))
            else:
                needs_restart.append(f"flow {name}: {key}")
        flows[name] = _with(flow, changes)
    needs_restart += [f"flow {name} is new" for name in there if name not in running]
    needs_restart += _sections(old, new)
    return Reloaded(flows=flows, taken=tuple(taken), needs_restart=tuple(needs_restart))


def _sections(old: Configuration, new: Configuration) -> Iterable[str]:
    """Name changed parts of the file; values stay unsaid, there may be secrets among them."""
    for key, before, after in _differences(old, new):
        if key == "clusters":
            for name in sorted(before.keys() | after.keys()):
                if before.get(name) != after.get(name):
                    yield f"clusters.{name}"
        elif key not in {"flows", "file"}:
            yield key


def _differences(old: Any, new: Any) -> Iterable[tuple[str, Any, Any]]:  # noqa: ANN401 - dataclasses
    for field in fields(old):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before != after:
            yield field.name, before, after


def _with(flow: FlowConfig, changes: Mapping[str, Any]) -> FlowConfig:
    values = {field.name: getattr(flow, field.name) for field in fields(flow)}
    return FlowConfig(**(values | dict(changes)))


def _told(key: str, before: Any, after: Any) -> Iterable[str]:  # noqa: ANN401 - any field
    """Say what a change is, each policy by itself."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                yield f"{name}: {_word(before.get(name))} -> {_word(after.get(name))}"
    else:
        yield f"{key}: {_word(before)} -> {_word(after)}"


def _word(value: Any) -> str:  # noqa: ANN401 - any field
    if isinstance(value, SettingsSync):
        defaults = "the source's" if value.takes_defaults else "the target's"
        return f"{_word(value.names)}, defaults {defaults}"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, PatternSet):
        include, exclude = (
            ", ".join(pattern.pattern for pattern in patterns)
            for patterns in (value.include, value.exclude)
        )
        return f"include {include or 'nothing'}, exclude {exclude or 'nothing'}"
    return str(value)
