"""The page about the settings of a bundled broker: Kafka's names, with our defaults and limits."""

from collections.abc import Iterator
from dataclasses import MISSING, Field
from typing import Any, Final

from broker.config import ACCEPTED_WITHOUT_EFFECT, SETTINGS
from broker.setting_descriptions import explained
from docs.generate.markdown import literal, page, section, table

INTRODUCTION: Final = """
`broker run` reads a `server.properties` in Kafka's format, and `--override KEY=VALUE` sets one of
these names. Names, meanings and defaults are those of Apache Kafka 3.9, and `broker configs
describe` shows what counts now. A key that is unknown, and a value beyond its limits, is refused by
file, line and key. Older names in other units (`log.retention.hours`, `log.roll.hours`, `log.dir`)
are taken as well. [Bundled brokers](../operate/bundled-brokers.md) explains what is about TLS and
SASL.
"""

WITHOUT_EFFECT: Final = "These are taken so that Kafka's own sample file starts a broker."
MOST: Final = 2**63 - 1


def broker_settings_page() -> str:
    """Return the page."""
    return page(
        "Settings of a bundled broker",
        INTRODUCTION,
        table(("setting", "value", "default", "meaning"), _rows()),
        section(
            "Settings without effect",
            WITHOUT_EFFECT,
            "\n".join(f"- {literal(name)}" for name in sorted(ACCEPTED_WITHOUT_EFFECT)),
        ),
    )


def _rows() -> Iterator[tuple[str, str, str, str]]:
    for name, entry in SETTINGS.items():
        yield literal(name), _kind(entry), _default(entry), explained(name)[1] or ""


def _kind(entry: Field[Any]) -> str:
    limits = entry.metadata
    if "choices" in limits:
        return " or ".join(literal(one) or "empty" for one in limits["choices"])
    if "form" in limits:
        return literal(limits["form"])
    if "minimum" in limits:
        kind = "number" if entry.type is float else "whole number"
        least, most = limits["minimum"], limits.get("maximum", MOST)
        return f"{kind}, {least} " + (f"to {most}" if most < MOST else "or more")
    return "true or false" if entry.type is bool else "text"


def _default(entry: Field[Any]) -> str:
    if entry.default is MISSING and entry.default_factory is MISSING:
        return "required"
    if entry.default_factory is not MISSING:
        return "each name its own protocol" if entry.default_factory() else "none"
    value = entry.default
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return literal(str(value).lower())
    parts = value if isinstance(value, tuple) else (value,)
    return ", ".join(literal(str(part)) or "empty" for part in parts)
