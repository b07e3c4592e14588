"""`ssl.principal.mapping.rules` makes names of subjects as Apache Kafka does (KIP-371)."""

import pytest

from broker.security.principal_mapping import DEFAULT_RULES, parse_rules

SUBJECT = "CN=Duke,OU=ServiceUsers,O=Org,L=Berlin,ST=BE,C=DE"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("", SUBJECT),
        ("DEFAULT", SUBJECT),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "Duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", "duke"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$2@$1/U", "SERVICEUSERS@DUKE"),
        ("RULE:^CN=Nobody$/x/, RULE:^.*CN=([^,]+).*$/$1/L,DEFAULT", "duke"),
        ("RULE:^CN=Nobody$/x/,DEFAULT", SUBJECT),
        ("RULE:^CN=Nobody$/x/", None),
        ("RULE:^CN=Duke/x/", None),  # it has to fit the whole subject
        (r"RULE:^.*C=(\w+)$/a\/$1\$9/", "a/DE$9"),
        ("RULE:^(CN=Duke)(,X=1)?.*$/$1$2$7/", "CN=Duke$7"),
    ],
)
def test_the_first_rule_that_fits_says_the_name(rules: str, name: str | None) -> None:
    assert parse_rules(rules).name(SUBJECT) == name


@pytest.mark.parametrize(
    "rules", ["RULE:", "RULE:a/b", "default", "RULE:(/x/", "DEFAULT;DEFAULT", "RULE:a/b/X"]
)
def test_what_is_no_rule_is_named(rules: str) -> None:
    with pytest.raises(ValueError, match=r"is not DEFAULT or RULE|is no pattern"):
        parse_rules(rules)


def test_the_rules_are_shown_as_they_were_given() -> None:
    assert str(DEFAULT_RULES) == "DEFAULT"
    assert str(parse_rules("RULE:a/b/,DEFAULT")) == "RULE:a/b/,DEFAULT"
