"""Long files come first, and what shares a Spark session stays together."""

from pathlib import Path

from tests.scheduling import LONGEST, SPARK, rank, unit

HERE = Path(__file__).parent


def test_files_go_to_processes_as_a_whole_and_those_that_share_a_session_together() -> None:
    session, audit = "tests/spark_audit/test_session.py", "tests/spark_audit/test_flow_audit.py"
    assert unit(f"{session}::test_a[b::c]") == unit(f"{audit}::test_d") == SPARK
    assert unit("tests/wire/test_x.py::test_a[b::c]") == "tests/wire/test_x.py"
    assert (
        unit("tests/spark_audit/scan/test_log.py::test_a") == "tests/spark_audit/scan/test_log.py"
    )


def test_the_longest_come_first_then_all_that_are_slow_then_the_others() -> None:
    tests = ["tests/a.py", "tests/z.py", "tests/drill/test_drill.py", f"{SPARK}program.py"]
    ordered = sorted(tests, key=lambda test: rank(test, is_in_slow_file=test != "tests/a.py"))
    assert ordered == [
        f"{SPARK}program.py",
        "tests/drill/test_drill.py",
        "tests/z.py",
        "tests/a.py",
    ]


def test_what_is_said_to_be_long_is_there() -> None:
    for start in LONGEST:
        folder, _, begins = start.rpartition("/")
        assert any(file.name.startswith(begins) for file in (HERE.parent / folder).iterdir()), start
