"""Client quotas that the target is given: those that it lacks, and changes on the source. Pure.

A quota that somebody set on the target stays as it is. What a run has seen on both sites alike it
may change when the source's changes; nothing is ever removed.
"""

from collections.abc import Mapping
from typing import Final

from wire.net.client_quotas import Entity, Quotas, entity_words

ADDRESS: Final = "ip"
"""Addresses differ between sites, so their quotas stay."""


class QuotasGiven:
    """What one run has seen alike on both sites."""

    def __init__(self) -> None:
        self._alike: dict[tuple[Entity, str], float] = {}

    def due(self, source: Quotas, target: Quotas) -> Quotas:
        """Return what to set on the target."""
        due: Quotas = {}
        for entity, quotas in _carried(source).items():
            there = target.get(entity, {})
            for key, value in quotas.items():
                key_alike = entity, key
                if there.get(key) == value:
                    self._alike[key_alike] = value
                elif key not in there or there[key] == self._alike.get(key_alike):
                    due.setdefault(entity, {})[key] = value
        return due


def differing_quotas(source: Quotas, target: Quotas) -> list[str]:
    """Return a line for each quota of the source that the target has not, or has otherwise."""
    lines: list[str] = []
    for entity, quotas in sorted(_carried(source).items(), key=lambda one: entity_words(one[0])):
        held = target.get(entity, {})
        for key, value in sorted(quotas.items()):
            there = f"{held[key]:g}" if key in held else "none"
            if held.get(key) != value:
                what = f"{key} of {entity_words(entity)}"
                lines.append(f"{what}: {value:g} on the source, {there} on the target")
    return lines


def _carried(quotas: Quotas) -> Mapping[Entity, Mapping[str, float]]:
    return {
        entity: held
        for entity, held in quotas.items()
        if all(kind != ADDRESS for kind, _ in entity)
    }
