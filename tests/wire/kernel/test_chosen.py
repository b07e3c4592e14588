"""Who walks chunks: a kernel that was not built, is of another version or wrong is not used."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import wire.kernel
from wire.hot.produce_run import ProduceRun, read_run
from wire.kernel import chosen
from wire.kernel.chosen import VERSION, native, walker
from wire.record_batch import passing


@pytest.fixture(autouse=True)
def chosen_anew() -> Iterator[None]:
    """What is chosen here is not what the process goes by."""
    native.cache_clear()
    yield
    native.cache_clear()


def kernel(monkeypatch: pytest.MonkeyPatch, module: ModuleType | None) -> str:
    """Return who walks where the kernel is this module, which does as Python does."""
    monkeypatch.setitem(sys.modules, "wire.kernel._chunk", module)
    monkeypatch.delattr(wire.kernel, "_chunk", raising=False)
    found = native()
    if not found.is_native:
        assert found.pass_on is passing.pass_on
    return found.words


def like_python() -> ModuleType:
    module = ModuleType("wire.kernel._chunk")
    vars(module).update(
        VERSION=VERSION,
        WAYS=("tables",),
        pass_on=passing.pass_on,
        needs_no_rebuilding=lambda _view, _source: True,
        read_run=lambda _, *others: read_run(*others),
    )
    return module


def test_a_kernel_that_does_as_python_does_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel(monkeypatch, like_python()) == "native code (checksums: tables)"


def test_without_a_kernel_python_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel(monkeypatch, None) == "Python (the chunk kernel was not built)"


@pytest.mark.parametrize(("version", "told"), [(VERSION + 1, str(VERSION + 1)), (None, "nameless")])
def test_a_kernel_of_another_version_is_named_and_not_used(
    monkeypatch: pytest.MonkeyPatch, version: int | None, told: str
) -> None:
    module = like_python()
    vars(module)["VERSION"] = version
    if version is None:
        del vars(module)["VERSION"]
    expected = f"Python (the chunk kernel is of version {told} instead of {VERSION})"
    assert kernel(monkeypatch, module) == expected


def test_a_kernel_that_does_otherwise_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    module = like_python()

    def pass_on(view: memoryview, *others: Any) -> object:
        position, source, place, rows = passing.pass_on(view, *others)
        return position, source, place, rows[:-1]

    vars(module)["pass_on"] = pass_on
    expected = "Python (the chunk kernel does not do what Python does)"
    assert kernel(monkeypatch, module) == expected


def test_a_kernel_that_reads_other_runs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    module = like_python()

    def read_fewer(_: object, *others: Any) -> ProduceRun | None:
        run = read_run(*others)
        return run and run._replace(requests=run.requests[:-1])

    vars(module)["read_run"] = read_fewer
    expected = "Python (the chunk kernel does not read what Python reads)"
    assert kernel(monkeypatch, module) == expected


def test_the_trial_reads_a_run_that_ends_before_what_is_damaged() -> None:
    run = chosen._trial_of_runs(read_run)
    assert isinstance(run, ProduceRun)
    assert len(run.requests) == 2


def test_a_kernel_that_raises_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    module = like_python()

    def pass_on(*_: object) -> object:
        raise TypeError("5 arguments instead of 6")

    vars(module)["pass_on"] = pass_on
    assert kernel(monkeypatch, module) == "Python (the chunk kernel: 5 arguments instead of 6)"


def test_a_kernel_that_is_switched_off_does_not_walk() -> None:
    assert walker(may_be_native=False).words == "Python (switched off)"
    assert walker(may_be_native=False) is chosen.IN_PYTHON
    assert walker(may_be_native=True) is native()
