"""The page about the witness: paths as the code makes them, nodes as it writes them."""

import inspect
from collections.abc import Iterator
from dataclasses import fields
from textwrap import dedent
from typing import Final

from docs.generate.markdown import code, literal, page, section, table
from failover.automatic import votes
from failover.client.carried import Carried
from failover.client.position_handover import Handover
from failover.journal import journal
from failover.journal.journals import KEPT
from mirror.state import orders
from mirror.workers import handover
from runtime.coordination import known_ends
from runtime.coordination.witness import (
    ActiveSite,
    EvidenceNumber,
    FlowCommand,
    Pair,
    RunningFlow,
    SetTopics,
    WitnessPaths,
    WorkerInfo,
)
from wire.topic_partition import TopicPartition

INTRODUCTION: Final = """
The witness is a ZooKeeper ensemble apart from both sites. It decides which site is active.
Everything lies below `coordination.path` (`/kafka-dr`), called `<path>` here. Nodes are JSON
unless the table says otherwise. An ephemeral node goes with the session of the program that made
it. A promotion is carried out by `failover promote`, by `failover abort`, and by `failover serve`
where it ends what a dead controller left or promotes by itself.
"""

PATHS: Final = WitnessPaths(root="<path>")
FLOW: Final = ("<source>", "<target>")
MEMBER: Final = "<path>/groups/<group>/<member>"

REHEARSER: Final = "`failover rehearse`, `failover serve` when one is due"
CONTROLLER: Final = "a promotion"
LEADER: Final = "`mirror run`, the worker that leads"
WORKERS: Final = "`mirror run`"
FIRST: Final = "the first start of `mirror run` or `failover serve`"
RECOVER: Final = "`failover recover --write`"
SETTERS: Final = f"{RECOVER}; `failover adopt`"
MAP_WRITERS: Final = (
    f"{WORKERS}; {CONTROLLER}; `mirror restart --quarantine`; `mirror rebuild-map`; {RECOVER}"
)

TREE: Final = (
    (
        PATHS.pair,
        "",
        "The pair: its id, made at the first start, and the ids of its clusters.",
        f"{FIRST}; {SETTERS}",
    ),
    (
        PATHS.active,
        "",
        "The active site, its epoch, and where a planned promotion moves to.",
        f"{FIRST}; {CONTROLLER}, in one transaction with its journal; {SETTERS}",
    ),
    (
        PATHS.evidence_number,
        "",
        "The number of the newest evidence on the clusters.",
        f"whoever writes evidence: {FIRST}; {CONTROLLER}; {RECOVER}",
    ),
    (
        PATHS.worker(*FLOW),
        "ephemeral",
        "The worker that leads the flow: host, process and pages.",
        LEADER,
    ),
    (
        f"{PATHS.workers(*FLOW)}/<id>",
        "ephemeral",
        "A worker at work, compressed with zlib.",
        WORKERS,
    ),
    (
        PATHS.assignment(*FLOW),
        "",
        "Which worker mirrors which partition, compressed with zlib.",
        LEADER,
    ),
    (
        PATHS.command(*FLOW),
        "",
        "What `failover` has told the flow to do: run or stop.",
        f"{CONTROLLER}; {RECOVER} deletes it",
    ),
    (
        PATHS.acknowledged(*FLOW),
        "",
        "The command that the flow has carried out last.",
        f"{LEADER}; {RECOVER} deletes it",
    ),
    (
        PATHS.running(*FLOW),
        "",
        "The settings by which the flow is run, by the worker that leads.",
        LEADER,
    ),
    (
        PATHS.known_ends(*FLOW),
        "",
        "Where the source's logs ended, as the mirror last heard.",
        LEADER,
    ),
    (
        f"{PATHS.known_ends_parts(*FLOW)}/<part>",
        "",
        "What is long of it: JSON, compressed with zlib.",
        LEADER,
    ),
    (
        PATHS.orders(*FLOW),
        "",
        "What `mirror pause` and `mirror restart` have ordered.",
        f"`mirror pause`, `resume`, `restart`; {LEADER}, which takes out what is done",
    ),
    (
        PATHS.map_writers(*FLOW),
        "",
        "Who may write the flow's map: producer ids, and up to where an older map was adopted.",
        MAP_WRITERS,
    ),
    (
        PATHS.checkpoint_writers(*FLOW),
        "",
        "The same of the flow's checkpoints.",
        f"{WORKERS}; {RECOVER}",
    ),
    (
        PATHS.making_producer(*FLOW),
        "ephemeral",
        "The leader that makes the producer id of mirrored records, once.",
        LEADER,
    ),
    (
        PATHS.lease,
        "ephemeral",
        "The one controller.",
        "whoever promotes, aborts, recovers or adopts, while it does",
    ),
    (
        PATHS.lease_wanted,
        "ephemeral",
        "Somebody waits for the lease; a rehearsal that has it gives way.",
        "whoever promotes or aborts, while it waits",
    ),
    (
        PATHS.hold,
        "",
        "Who keeps promotions from beginning, when and why.",
        "`failover hold`, `failover release`",
    ),
    (PATHS.rehearsal_lease, "ephemeral", "The one rehearsal that runs.", REHEARSER),
    (f"{PATHS.rehearsals}/<number>", "", "What a rehearsal found out.", REHEARSER),
    (PATHS.vote("<voter>"), "ephemeral", "What a voter sees.", "`failover serve --voter NAME`"),
    (f"{PATHS.journals}/<epoch>", "", "The journal of one promotion.", CONTROLLER),
    (
        f"{PATHS.all_journal_parts}/<epoch>/<part>",
        "",
        "A long value of a journal, or a part of one: JSON, compressed with zlib.",
        CONTROLLER,
    ),
    (
        PATHS.patterns,
        "",
        "The patterns with which a set of topics has begun.",
        f"{FIRST}; {SETTERS}",
    ),
    (
        f"{PATHS.sets}/<set>/...",
        "",
        "The same of one set of topics. All share lease, hold, votes, members and writers.",
        "as above",
    ),
    (
        MEMBER,
        "ephemeral",
        "How far a member of a group got; the group's name is percent-encoded.",
        "applications, by `failover.client`",
    ),
)

VALUES: Final = (
    (PATHS.pair, Pair),
    (PATHS.active, ActiveSite),
    (PATHS.evidence_number, EvidenceNumber),
    (PATHS.worker(*FLOW), WorkerInfo),
    (PATHS.command(*FLOW), FlowCommand),
    (PATHS.running(*FLOW), RunningFlow),
    (PATHS.patterns, SetTopics),
)


def witness_page() -> str:
    """Return the page."""
    return page(
        "The witness's tree",
        INTRODUCTION,
        table(("node", "kind", "what it holds", "who writes it"), _nodes()),
        section("Fields", table(("node", "field", "type"), _fields())),
        section("How partitions move between workers", code(_block(handover))),
        section("Orders", code(_block(orders))),
        section("Where the source ended", code(_block(known_ends), "text")),
        section("A voter's node", code(_block(votes), "text")),
        section("The journal of a promotion", JOURNALS, code(_block(journal), "text")),
        section("A member's node", code(HANDOVER, "json")),
    )


JOURNALS: Final = f"""
The journal is written before and after each step. The newest {KEPT} journals are kept, and with
them the first and the last completed one of each direction, which audits need.
""".strip()
CARRIED: Final = Carried(site="dc1", positions={TopicPartition("orders", 0): 1042})
HANDOVER: Final = Handover(epoch=3, carried=CARRIED).encode().decode()


def _nodes() -> Iterator[tuple[str, str, str, str]]:
    for path, kind, meaning, writers in TREE:
        yield literal(path), kind, meaning, writers


def _fields() -> Iterator[tuple[str, str, str]]:
    for path, value in VALUES:
        for field in fields(value):
            yield literal(path), literal(field.name), literal(_type(field.type))


def _type(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _block(module: object) -> str:
    """Return the indented block of a module's docstring."""
    lines = (inspect.getdoc(module) or "").splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("    "))
    last = max(index for index, line in enumerate(lines) if line.startswith("    "))
    return dedent("\n".join(lines[first : last + 1]))
