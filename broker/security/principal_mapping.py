"""From the subject of a client's certificate to its name: `ssl.principal.mapping.rules` (KIP-371).

    RULE:^CN=([^,]+),.*$/$1/L, RULE:^CN=(.*)$/$1/, DEFAULT

The first rule whose pattern fits the whole subject says the name: its replacement, in which `$1` is
the first group, in lower case with `L` and in upper case with `U`. DEFAULT keeps the subject. Rules
of Kafka's SslPrincipalMapper; patterns are Python's, which take what Java's usual ones say. Pure.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final

from wire.values import frozen

_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/"
    r"(?P<replacement>(?:\\.|[^\\/])*)/(?P<letters>[LU]?))\s*(?:[,\n]|$)"
)
_REFERENCE: Final = re.compile(r"\\(?P<letter>.)|\$(?P<group>\d)")
_LETTERS: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {"": str, "L": str.lower, "U": str.upper}
)


@frozen(kw_only=False)
class Rule:
    """One rule; without a pattern it is DEFAULT."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    letters: str = ""

    def name(self, subject: str) -> str | None:
        """Return the name of this subject; None where the rule does not fit."""
        if self.pattern is None:
            return subject
        fitting = self.pattern.fullmatch(subject)
        if fitting is None:
            return None

        def referred(reference: re.Match[str]) -> str:
            if reference["letter"] is not None:
                return reference["letter"]
            number = int(reference["group"])
            if number > fitting.re.groups:
                return reference[0]
            return fitting[number] or ""

        return _LETTERS[self.letters](_REFERENCE.sub(referred, self.replacement))


@frozen(kw_only=False)
class PrincipalRules:
    """The rules of one listener, in order."""

    text: str = "DEFAULT"
    rules: tuple[Rule, ...] = field(default=(Rule(),), repr=False)

    def name(self, subject: str) -> str | None:
        """Return the name of this subject; None where no rule fits."""
        for rule in self.rules:
            name = rule.name(subject)
            if name is not None:
                return name
        return None

    def __str__(self) -> str:
        return self.text


DEFAULT_RULES: Final = PrincipalRules()


def parse_rules(text: str) -> PrincipalRules:
    """Return the rules. Raises ValueError, which names the part that is none."""
    rules: list[Rule] = []
    position = 0
    while position < len(text.rstrip()):
        found = _RULE.match(text, position)
        if found is None:
            raise ValueError(f"{text[position:]!r:.80} is not DEFAULT or RULE:pattern/replacement/")
        rules.append(_rule(found))
        position = found.end()
    return PrincipalRules(text, tuple(rules)) if rules else DEFAULT_RULES


def _rule(found: re.Match[str]) -> Rule:
    if found["default"]:
        return Rule()
    try:
        pattern = re.compile(found["pattern"])
    except re.error as error:
        raise ValueError(f"{found['pattern']!r:.80} is no pattern: {error}") from error
    return Rule(pattern, found["replacement"], found["letters"])
