"""What each command of `failover` prints with `--json`: its shape."""

from collections.abc import Mapping
from typing import Final

from docs.generate.output_shapes import Shape

GIVEN: Final[Shape] = {"what": "string", "user": "string", "host": "string", "at_ms": "integer"}
HOLD: Final[Shape] = {"reason": "string?", "given": (GIVEN, "null"), "garbled": "string?"}
ENDS: Final[Shape] = {
    "topic": "string",
    "partition": "integer",
    "mirrored_source_end": "integer",
    "target_end": "integer",
    "source_end": "integer?",
}
JOURNAL: Final[Shape] = {
    "epoch": "integer",
    "site": "string",
    "source": "string",
    "kind": "string",
    "state": "string",
    "direction": "string",
    "reason": "string?",
    "started_ms": "integer",
    "switched_ms": "integer?",
    "partitions": [ENDS],
    "steps": [
        {
            "name": "string",
            "state": "string",
            "started_ms": "integer",
            "ended_ms": "integer?",
            "facts": {"*": "any"},
        }
    ],
    "given": [GIVEN],
}
WORKER: Final[Shape] = {
    "host": "string",
    "pid": "integer",
    "metrics_url": "string",
    "started_ms": "integer",
}
COMMAND: Final[Shape] = {"epoch": "integer", "run": "boolean"}
FAILOVER_STATUS: Final[Shape] = {
    "active": {"site": "string", "epoch": "integer", "moving_to": "string?"},
    "sites": [
        {
            "name": "string",
            "is_active": "boolean",
            "fault": "string?",
            "fenced_topics": ["string"],
            "allowed_clients": ["string"],
            "open_topics": ["string"],
            "why_open": "string?",
            "denied_creation": ["string"],
            "due_creation": (["string"], "null"),
            "is_written_to": "boolean",
        }
    ],
    "flows": [
        {
            "name": "string",
            "is_out_of_active": "boolean",
            "worker": (WORKER, "null"),
            "command": (COMMAND, "null"),
            "acknowledged": (COMMAND, "null"),
            "state": "string",
        }
    ],
    "hold": (HOLD, "null"),
    "votes": {"*": ({"*": "any"}, "null")},
    "unfinished": (JOURNAL, "null"),
    "last": (JOURNAL, "null"),
}
REHEARSAL: Final[Shape] = {
    "number": "integer",
    "site": "string",
    "home": "string",
    "started_ms": "integer",
    "given": GIVEN,
    "state": "string",
    "reason": "string?",
    "ended_ms": "integer?",
    "legs": [
        {
            "site": "string",
            "epoch": "integer",
            "rto_ms": "integer?",
            "closed_ms": "integer?",
            "writers_ms": "integer?",
            "readers_ms": "integer?",
            "steps": {"*": "integer"},
        }
    ],
    "load": (
        dict.fromkeys(
            (
                *("acknowledged", "lost", "doubled", "out_of_order", "unsettled", "refused"),
                *("reread", "unread", "uncopied"),
            ),
            "integer",
        ),
        "null",
    ),
    "applications": [{"set": "string", "site": "string", "ready": "boolean?", "reason": "string?"}],
}
LOSS: Final[Shape] = {
    "records_at_least": "integer",
    "records": "integer?",
    "seconds": "number?",
    "news_age_seconds": "number?",
    "before_start_at_most": "integer",
    "partitions": [
        {
            "topic": "string",
            "partition": "integer",
            "known_source_end": "integer?",
            "mirrored_source_end": "integer?",
            "records_at_least": "integer?",
            "records": "integer?",
            "seconds": "number?",
        }
    ],
}
BEFORE_START: Final[Shape] = {
    "topic": "string",
    "partition": "integer",
    "start": "string",
    "begun_at": "integer",
    "source_log_start": "integer?",
    "records_at_most": "integer",
}
HOOK: Final[Shape] = {"name": "string", "point": "string", "calls": "string"}
PLAN: Final[Shape] = {
    "set?": "string",
    "site": "string",
    "source": "string",
    "epoch": "integer",
    "kind": "string",
    "flow": "string",
    "worker": "string?",
    "topics": {"*": "integer"},
    "lag": "integer?",
    "backlog": {"*": "integer"},
    "loss": (LOSS, "null"),
    "before_start": [BEFORE_START],
    "groups": {"*": "integer"},
    "plain_members": {"*": "integer"},
    "renamed": {"*": "string"},
    "warnings": ["string"],
    "applications": (
        {
            "refused": [
                {
                    "principal": "string?",
                    "host": "string",
                    "kind": "string",
                    "operation": "string",
                    "names": ["string"],
                }
            ],
            "missing_scram_users": ([["string"]], "null"),
            "withheld": ["string"],
            "unknown": ["string"],
        },
        "null",
    ),
    "replaces": "integer?",
    "steps": ["string"],
    "hooks": [HOOK],
}
RESUMED: Final[Shape] = {
    "set?": "string",
    "resumes": "integer",
    "site": "string",
    "source": "string",
    "kind": "string",
    "direction": "string",
    "hooks": [HOOK],
}
REPORT: Final[Shape] = {
    "set?": "string",
    "site": "string",
    "source": "string",
    "kind": "string",
    "epoch": "integer",
    "state": "string",
    "reason": "string?",
    "began_ms": "integer",
    "switched_ms": "integer?",
    "rto_ms": "integer?",
    "closed_ms": "integer?",
    "phases": [{"step": "string", "state": "string", "after_ms": "integer", "took_ms": "integer?"}],
    "lost": {
        "records": "integer?",
        "at_least": "integer?",
        "seconds": "number?",
        "partitions": {"*": "integer"},
        "before_start": "integer",
    },
    "slipped": [{"topic": "string", "partition": "integer", "start": "integer", "stop": "integer"}],
    "groups": {
        "moved": "integer?",
        "committed": "integer?",
        "bounded": "any",
        "left": {"*": "any"},
        "cut": {"*": "any"},
        "unstable": ["any"],
        "more": "integer",
        "not_carried": {"*": "any"},
        "still_members": {"*": "any"},
    },
    "fence": {
        "partitions": "integer?",
        "why_not": "string?",
        "looked_ms": "integer?",
        "not_looked": "string?",
    },
    "hooks": [
        {
            "hook": "string",
            "point": "string",
            "attempts": "integer",
            "duration_ms": "integer",
            "said": "string",
            "failure": "string?",
        }
    ],
    "given": [GIVEN],
    "partitions": [ENDS],
}
PROMOTED: Final[Shape] = {
    "set?": "string",
    "epoch": "integer",
    "began": "string",
    "to": "string",
    "kind": "string",
    "state": "string",
    "rto_ms": "integer?",
    "closed_ms": "integer?",
    "lost": "integer?",
    "by": "string?",
    "reason": "string?",
}
FAILOVER: Final[Mapping[str, Shape]] = {
    "promote": (REPORT, [REPORT]),
    "plan": (PLAN, RESUMED, [(PLAN, RESUMED)]),
    "rehearse": REHEARSAL,
    "abort": REPORT,
    "hold": {"hold": HOLD, "replaced": (HOLD, "null"), "begun": ["integer"]},
    "release": {"released": (HOLD, "null")},
    "status": (FAILOVER_STATUS, {"sets": {"*": FAILOVER_STATUS}}),
    "history": ([PROMOTED], {"promotions": [PROMOTED], "rehearsals": [REHEARSAL]}),
    "report": REPORT,
    "divergence": {
        "what": "string",
        "site": "string",
        "topic": "string",
        "partition": "integer",
        "offset": "integer",
        "timestamp_ms": "integer",
        "key": "string?",
    },
}
