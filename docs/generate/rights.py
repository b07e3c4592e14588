"""The page about the rights that our own programs need, from the table that `mirror acls` reads."""

from typing import Final

from docs.generate.markdown import page, section, sentence, table
from runtime.rights.needed import MEANT, NEEDS, At, By
from wire.acls import Operation, ResourceType

INTRODUCTION: Final = """
What each program needs where a cluster has an authorizer, and no more. A test runs all of them on
Apache Kafka with just these rights, each as a user of its own. DESCRIBE is given with READ,
WRITE, DELETE and ALTER, and DESCRIBE_CONFIGS with ALTER_CONFIGS (Kafka's rules).

`mirror acls dc.yaml` prints the commands that give them for the flows of a file:

```bash
mirror acls --program failover --principal User:failover dc.yaml
```

- Source and target are those of a flow. With flows in both directions, as a promotion wants them,
  each cluster is both, and the same command prints both.
- A pattern of the file that is neither a name nor a prefix becomes a right to all names; the
  output says so.
- The right to get a producer id is WRITE on any topic, and before Apache Kafka 3.0
  IDEMPOTENT_WRITE on the cluster.
- A planned promotion away from Apache Kafka needs more: its source is closed by DENYs of WRITE
  and CREATE, so the users of `mirror` and `failover` have to be [in
  `super.users`](../operate/apache-kafka.md) there.
- Bundled brokers are closed by a setting, so the rights to close Apache Kafka are not needed for
  them, and the other way round.
- What only a command of a person needs says "if it is given". `mirror acls` prints it with
  `--orders`; take it back when the command has done its work.
- `mirror check` names what is missing for topics. The optional rights of the mirror turn off what
  they are for, and nothing else.
"""
TITLES: Final = {
    By.MIRROR: "`mirror`",
    By.FAILOVER: "`failover`",
    By.AUDIT: "`spark-audit`",
    By.CLIENT: "Applications with `failover.client`",
}


def rights_page() -> str:
    """Return the page."""
    parts = [
        section(
            f"{title} on the {at.value}",
            table(
                ("resource", "operations", "why, or the setting that asks for it"),
                (
                    (
                        _resource(need.thing.value, MEANT[need.thing]),
                        ", ".join(map(_name, need.operations)),
                        sentence(need.reason),
                    )
                    for need in NEEDS
                    if (need.program, need.at) == (program, at)
                ),
            ),
        )
        for program, title in TITLES.items()
        for at in At
    ]
    return page("Rights of the programs", INTRODUCTION, *parts)


def _resource(words: str, kind: ResourceType) -> str:
    return f"topic {words}" if words.startswith("`") and kind is ResourceType.TOPIC else words


def _name(operation: Operation) -> str:
    return operation.name
