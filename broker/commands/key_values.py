"""`KEY=VALUE` as it is typed for settings and quotas."""

from collections.abc import Iterable

from runtime.program.program import BadInput


def key_values(option: str, typed: Iterable[str]) -> dict[str, str]:
    """Return values by key. Raises BadInput for a text without `=`, and a key that is twice there.

    Only the first `=` parts: values may have more of them.
    """
    values: dict[str, str] = {}
    for text in typed:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise BadInput(f"{option} {text}: not KEY=VALUE")
        if key in values:
            raise BadInput(f"{option} {text}: {key} has a value already, {values[key]}")
        values[key] = value
    return values
