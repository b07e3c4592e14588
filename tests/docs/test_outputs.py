"""What commands print with --json is what the published schemas say.

Commands that other tests run with --json are looked at by the same schemas (`tests.commands`).
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from docs.generate.commands import PROGRAMS
from docs.generate.output_page import shapes
from docs.generate.output_shapes import schema_of
from docs.generate.outputs import LINES, SHAPES
from failover.automatic.hold import Hold
from failover.planning.plan import Plan, Resume, decide
from failover.planning.plan_description import plan_document
from failover.view.promotion_report import history_row, report_document
from failover.view.status import status_document
from mirror.commands.status_choice import StatusChoice
from spark_audit.site_digest import NightReport
from tests.commands import run_mirror_command
from tests.failover.journals import begun
from tests.failover.plans import ALL_WELL, BACK, PLANNED, last_promotion
from tests.failover.rehearsal.rehearsed import REHEARSAL
from tests.mirror.commands.status_reports import REPORT

HELD = Hold(garbled="no JSON").document()
SCHEMAS = {
    f"{program} {command}": schema_of(shape)
    for program, of_program in SHAPES.items()
    for command, shape in of_program.items()
}


def documents() -> Iterator[tuple[str, Any]]:
    """Yield documents that the code makes, each with the command that prints it."""
    plan = decide(ALL_WELL, PLANNED)
    assert isinstance(plan, Plan)
    yield "mirror status", StatusChoice(lag_over=0).of_report(REPORT)
    yield "failover plan", {**plan_document(plan), "hooks": []}
    yield "failover plan", {"set": "a", **plan_document(Resume(journal=begun())), "hooks": []}
    yield "failover status", status_document(BACK)
    yield "failover report", report_document(last_promotion())
    yield "failover promote", [{"set": "a", **report_document(begun())}]
    yield "failover history", [history_row(last_promotion())]
    yield "failover hold", {"hold": HELD, "replaced": HELD, "begun": [3]}
    yield "failover release", {"released": None}
    yield "failover rehearse", REHEARSAL.document()
    night = NightReport(
        site="dc1", night="n", logs=1, remembered=2, read_again=3, new=4, problems=("no answer",)
    )
    yield "spark-audit digest", asdict(night)


def test_every_schema_is_one_of_its_draft() -> None:
    for one in SCHEMAS.values():
        Draft202012Validator.check_schema(one)


@pytest.mark.parametrize(
    ("command", "document"), list(documents()), ids=[name for name, _ in documents()]
)
def test_a_document_is_as_its_schema_says(command: str, document: Any) -> None:
    Draft202012Validator(SCHEMAS[command]).validate(json.loads(json.dumps(document)))


@pytest.mark.parametrize(("command", "document"), list(documents()))
def test_a_schema_knows_every_field(command: str, document: Any) -> None:
    lacking = json.loads(json.dumps(document))
    one = lacking[0] if isinstance(lacking, list) else lacking
    one["unheard_of"] = 1
    with pytest.raises(ValidationError):
        Draft202012Validator(SCHEMAS[command]).validate(lacking)


def test_every_command_takes_json_or_says_why_not() -> None:
    without = {
        f"{program.name} {command.name}"
        for program in PROGRAMS
        for command in program.commands
        if not any("--json" in option.names for option in command.all_options)
    }
    assert without == {
        "mirror run", "mirror config example", "mirror config schema",
        "failover serve", "failover bootstrap", "spark-audit metrics", "broker run", "broker up",
    }  # fmt: skip


def test_every_shape_is_of_a_command_and_every_document_of_its_own_has_one() -> None:
    taken = {(program, command): shape for program, command, shape in shapes()}
    for program, of_program in SHAPES.items():
        assert {(program, command) for command in of_program} <= taken.keys()
    own = {
        (program.name, command.name)
        for program in PROGRAMS
        for command in program.commands
        if command.has_json and not command.says_lines
    }
    assert own == {key for key, shape in taken.items() if shape is not LINES}


def test_what_a_command_says_in_sentences_is_a_list_of_lines(tmp_path: Any) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n"
    )
    ended = run_mirror_command("import-mm2", "--json", str(file))
    told = json.loads(ended.stdout)
    assert (ended.returncode, told["command"]) == (0, "mirror import-mm2")
    assert "flows:" in told["lines"]


def test_a_complaint_stays_text_and_the_status_what_it_was(tmp_path: Any) -> None:
    ended = run_mirror_command("config", "validate", "--json", str(tmp_path / "none.yaml"))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("mirror: ")
