"""What the file may hold as JSON Schema (draft 2020-12), which editors complete and check by.

It is made of what the reader asks for. It takes whatever the reader takes. What hangs on other
keys, on files or on a grammar of its own (addresses, patterns), only the reader can tell.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from runtime.configuration.config import MEANINGS
from runtime.configuration.reading.section import FOR_PEOPLE, NO_DEFAULT, REQUIRED, Key
from runtime.configuration.schema.every_key import every_key

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
REQUIRED_SECTIONS: Final = ("clusters", "flows", "coordination")
ANY: Final = "<"
"""How a name in the documentation begins that stands for every name."""

Schema = dict[str, Any]


@dataclass(slots=True)
class _Mapping:
    """One section: its keys, and the sections within it."""

    keys: dict[str, list[tuple[str, Key]]] = field(default_factory=dict)
    """By key, each way in which it is read, with its name in the documentation."""
    within: dict[str, "_Mapping"] = field(default_factory=dict)
    times: set[str] = field(default_factory=set)
    """The sections of the file that were read so; a key is required that all of them require."""

    def at(self, path: str) -> "_Mapping":
        """Return the section at a path of names between dots, "" is this one."""
        found = self
        for name in path.split(".") if path else ():
            found = found.within.setdefault(name, _Mapping())
        return found


def configuration_schema() -> Schema:
    """Return the schema of the whole file."""
    top = _Mapping()
    for name, section, key in every_key():
        found = top.at(section)
        found.times.add(key.section)
        found.keys.setdefault(name.removeprefix(f"{section}."), []).append((name, key))
    schema = _schema(top)
    schema["required"] = list(REQUIRED_SECTIONS)
    schema["patternProperties"] = {f"^{FOR_PEOPLE}": {}}
    title = "The configuration of mirror, failover and spark-audit"
    return {"$schema": DRAFT, "title": title, **schema}


def _schema(mapping: _Mapping) -> Schema:
    properties: Schema = {}
    others: Schema | bool = False
    for name, ways in mapping.keys.items():
        if name.startswith(ANY):
            others = _value(*ways[-1])
        else:
            properties[name] = _value(*ways[-1])
    for name, inner in mapping.within.items():
        if name.startswith(ANY):
            others = _schema(inner)
        elif name.endswith("[]"):
            listed = {"type": "array", "minItems": 1, "items": _schema(inner)}
            properties[name.removesuffix("[]")] = listed
        else:
            properties[name] = _schema(inner)
    found: Schema = {"type": "object", "properties": properties, "additionalProperties": others}
    required = [name for name, ways in mapping.keys.items() if _is_required(ways, mapping)]
    return {**found, "required": required} if required else found


def _is_required(ways: list[tuple[str, Key]], mapping: _Mapping) -> bool:
    named, key = ways[-1]
    if ANY in named.rpartition(".")[2] or key.default != REQUIRED:
        return False
    return len(ways) == len(mapping.times) and all(way.default == REQUIRED for _, way in ways)


def _value(name: str, key: Key) -> Schema:
    schema = {"description": MEANINGS[name], **key.schema}
    if key.default.startswith(REQUIRED) or key.default in {NO_DEFAULT, ""}:
        return schema
    return {**schema, "default": _default(key)}


def _default(key: Key) -> object:
    kind = key.schema.get("type")
    if kind == "integer":
        return int(key.default)
    if kind == "boolean":
        return key.default == "true"
    return key.default.split(" ") if "list" in key.kind else key.default
