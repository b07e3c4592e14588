"""What `/metrics` says: in the format that a reader takes, with a program's process and version."""

from functools import partial

from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open_metrics
from prometheus_client.parser import text_string_to_metric_families

from mirror.state.measurements import FlowMeasurements, Slowest, export
from runtime.pages.exposition import (
    ManyFamily,
    ManyLines,
    exposition,
    label,
    nothing_many,
    program_registry,
)
from runtime.process.package_version import version

PROMETHEUS_ASKS = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
THINGS = ManyFamily(name="things_total", kind="counter", text="Things", labels=("place",))


async def two_things() -> ManyLines:
    lines = ManyLines([THINGS])
    lines.add("things_total", f'place="{label(chr(10) + chr(34))}"', 2)
    await lines.give_turn()
    lines.add("things_total", 'place="b"', 3)
    return lines


class Measured(CollectorRegistry):
    """A registry of one flow whose slowest batch is known."""

    def __init__(self, topic: str) -> None:
        super().__init__()
        flow = FlowMeasurements("dc1->dc2")
        flow.note_acknowledged(
            5_030, {5_000: 2}, {}, records=7, size_bytes=9, slowest=Slowest(5_000, topic, 4)
        )
        self.register(type("Of", (), {"collect": staticmethod(partial(export, [flow]))})())


async def test_a_reader_of_openmetrics_gets_it_and_others_the_older_text() -> None:
    kind, body = await exposition(program_registry("mirror"), two_things, PROMETHEUS_ASKS)
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    families = {one.name: one for one in read_open_metrics(b"".join(body).decode())}  # type: ignore[no-untyped-call]
    assert [one.value for one in families["things"].samples] == [2, 3]
    assert families["things"].samples[0].labels == {"place": '\n"'}
    kind, body = await exposition(program_registry("mirror"), two_things, "")
    assert kind.startswith("text/plain; version=0.0.4")
    older = {one.name: one for one in text_string_to_metric_families(b"".join(body).decode())}
    assert [one.value for one in older["things"].samples] == [2, 3]


async def test_every_program_tells_its_process_and_its_version() -> None:
    registry = program_registry("spark-audit")
    labels = {"program": "spark-audit", "version": version()}
    assert registry.get_sample_value("kafka_dr_build_info", labels) == 1
    for name in ("process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"):
        assert (registry.get_sample_value(name) or 0) > 0


async def test_the_slowest_batch_is_an_exemplar_of_its_bucket() -> None:
    _, body = await exposition(Measured("t"), nothing_many, PROMETHEUS_ASKS)
    page = b"".join(body).decode()
    [line] = [one for one in page.splitlines() if " # " in one]
    bucket = 'mirror_forward_duration_seconds_bucket{flow="dc1->dc2",le="0.05"} 2.0'
    assert line == f'{bucket} # {{partition="4",topic="t"}} 0.03 5.03'
    assert list(read_open_metrics(page))  # type: ignore[no-untyped-call]
    _, body = await exposition(Measured("t"), nothing_many, "")
    assert " # {" not in b"".join(body).decode()


async def test_a_topic_too_long_for_openmetrics_gives_no_exemplar() -> None:
    _, body = await exposition(Measured("t" * 249), nothing_many, PROMETHEUS_ASKS)
    assert b" # {" not in b"".join(body)
