"""What each command prints with `--json`: its shape, of which the published schemas are made.

`tests/docs/test_outputs.py` holds them equal to what commands print. Every command that tests run
with `--json` is looked at by its schema (`tests/commands.py`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from docs.generate.failover_outputs import FAILOVER
from docs.generate.output_shapes import Shape, shape_of
from mirror.report.status import StatusReport

LINES: Final[Shape] = {"command": "string", "lines": ["string"]}
FINDING: Final[Shape] = {
    "kind": "string",
    "flow": "string",
    "topic": "string",
    "partition": "integer",
    "source_offset": "integer?",
    "target_offset": "integer?",
    "records": "integer",
    "reason": "string",
}
VERDICT: Final[Shape] = {
    "version": "integer",
    "verdict": "string",
    "problem": "string?",
    "only_topics": ["string"],
    "started_ms": "integer",
    "ended_ms": "integer",
    "duration_s": "number",
    "records_compared": {"*": "integer"},
    "counts": {"*": "integer"},
    "flows": [
        {
            "flow": "string",
            "snapshot_ms": "integer",
            "promotion": "any",
            "prefix": "string",
            "renamed": {"*": "string"},
            "only_on_target": ["string"],
            "untold": [["any"]],
            "unaudited": ["string"],
            "settings": [["any"]],
            "rights": [["any"]],
            "rights_not_compared": "string?",
            "coverage": {"*": {"*": "integer"}},
            "partitions": [{"*": "any"}],
        }
    ],
}
TRANSACTION: Final[Shape] = {
    "transactional_id": "string",
    "coordinator": "integer",
    "producer_id": "integer",
    "state": "string",
}
TOPIC: Final[Shape] = {
    "topic": "string",
    "id": "string",
    "partitions": "integer",
    "replicas": "integer",
    "under_replicated": "integer",
    "leaderless": "integer",
    "internal": "boolean",
}
POSITION: Final[Shape] = {
    "group": "string",
    "topic": "string",
    "partition": "integer",
    "source_offset": "integer",
    "is_last_known": "boolean",
    "source_lag": "integer?",
    "target_offset": "integer?",
    "translated": "integer?",
    "exactness": "string",
    "reread": "integer?",
    "skipped": "integer?",
    "gone?": "integer?",
    "applied_ms": "integer?",
}
POSITIONS: Final[Shape] = {"flow": "string", "source_fault": "string?", "positions": [POSITION]}
EXPORTED: Final[Shape] = {
    "flow": "string",
    "positions": [
        {"group": "string", "topic": "string", "partition": "integer", "offset": "integer"}
    ],
    "untranslated": [{"group": "string", "topic": "string", "partition": "integer"}],
}
IMPORTED: Final[Shape] = {
    "flow": "string",
    "groups": [{"group": "string", "positions": "integer", "refused": {"*": "integer"}}],
}
PLACE: Final[Shape] = {
    "topic": "string",
    "partition": "integer",
    "from": "integer",
    "to": "integer?",
    "exact": "boolean",
    "told": "string",
}

MIRROR: Final[Mapping[str, Shape]] = {
    "status": shape_of(StatusReport),
    "topics": [
        {
            "flow": "string",
            "topics": [
                {
                    "topic": "string",
                    "partitions": "integer",
                    "is_mirrored": "boolean",
                    "left_out": "string?",
                    "target_topic": "string?",
                }
            ],
        }
    ],
    "acls": [
        {
            "cluster": "string",
            "program": "string",
            "principal": "string",
            "resource_type": "string",
            "name": "string",
            "pattern_type": "string",
            "operations": ["string"],
            "for": ["string"],
        }
    ],
    "offsets": (POSITIONS, EXPORTED, IMPORTED),
    "translate": (POSITIONS, PLACE),
    "config validate": {"file": "string", "clusters": ["string"], "flows": ["string"]},
}
AUDIT: Final[Mapping[str, Shape]] = {
    "run": VERDICT,
    "digest": {
        "site": "string",
        "night": "string",
        "logs": "integer",
        "remembered": "integer",
        "read_again": "integer",
        "new": "integer",
        "problems": ["string"],
        "begun": ["string"],
    },
    "report": {**VERDICT, "findings": [{"*": "any"}]},
    "history": [
        {
            "night": "string",
            "verdict": "string",
            "problem": "string?",
            "started_ms": "integer",
            "ended_ms": "integer",
            "compared": {"*": "integer"},
            "remembered": {"*": "integer"},
            "counts": {"*": "integer"},
            "left_out": "integer",
            "only_topics": ["string"],
        }
    ],
    "diff": {
        "earlier": "string",
        "later": "string",
        "new": [FINDING],
        "gone": [FINDING],
        "same": "integer",
        "not_kept": "integer",
    },
}
BROKER: Final[Mapping[str, Shape]] = {
    "topics list": [TOPIC],
    "topics describe": [
        {
            **TOPIC,
            "settings": ({"*": "string?"}, "null"),
            "partitions": [
                {
                    "partition": "integer",
                    "leader": "integer?",
                    "leader_epoch": "integer",
                    "replicas": ["integer"],
                    "isr": ["integer"],
                    "start": "integer?",
                    "end": "integer?",
                }
            ],
        }
    ],
    "groups list": [
        {"group": "string", "state": "string?", "type": "string?", "protocol": "string"}
    ],
    "groups describe": [
        {
            "group": "string",
            "state": "string",
            "protocol": "string",
            "assignor": "string",
            "positions": [
                {
                    "topic": "string",
                    "partition": "integer",
                    "position": "integer",
                    "end": "integer?",
                    "lag": "integer?",
                }
            ],
            "members": [
                {
                    "member": "string",
                    "instance": "string",
                    "client": "string",
                    "host": "string",
                    "partitions": (["string"], "null"),
                }
            ],
        }
    ],
    "groups reset-offsets": [
        {
            "topic": "string",
            "partition": "integer",
            "before": "integer?",
            "after": "integer?",
            "note": "string",
        }
    ],
    "configs describe": [
        {
            "key": "string",
            "value": "string?",
            "secret": "boolean",
            "source": "string",
            "is_set": "boolean",
            "read_only": "boolean",
            "synonyms": [{"key": "string", "value": "string?", "source": "string"}],
            "documentation": "string?",
        }
    ],
    "acls list": [
        {
            "resource": "string",
            "name": "string",
            "pattern": "string",
            "principal": "string",
            "host": "string",
            "operation": "string",
            "permission": "string",
        }
    ],
    "users list": [{"user": "string", "mechanism": "string", "iterations": "integer"}],
    "quotas list": [{"quota": "string", "value": ("number", "string"), "*": "string?"}],
    "transactions list": [TRANSACTION],
    "transactions describe": {
        **TRANSACTION,
        "producer_epoch": "integer",
        "timeout_ms": "integer",
        "start_ms": "integer",
        "partitions": ["string"],
    },
    "transactions find-hanging": [
        {
            "topic": "string",
            "partition": "integer",
            "start_offset": "integer",
            "producer_id": "integer",
            "producer_epoch": "integer",
            "coordinator_epoch": "integer",
            "last_ms": "integer",
        }
    ],
}
SHAPES: Final[Mapping[str, Mapping[str, Shape]]] = MappingProxyType(
    {"mirror": MIRROR, "failover": FAILOVER, "spark-audit": AUDIT, "broker": BROKER}
)
