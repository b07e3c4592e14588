"""No module assigns an attribute of an object that the tasks of a flow share: its owner does."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import mirror
from mirror.state.flow_state import FlowState
from mirror.state.in_flight import InFlight, InFlightBudget
from mirror.state.leadership import Leadership
from mirror.state.mirrored_progress import MirroredProgress
from mirror.state.orders_in_force import OrdersInForce
from mirror.state.partition import MirroredPartition
from mirror.state.retries import Retries
from mirror.state.reverse_flow import ReverseFlow
from mirror.state.skips import Skips
from mirror.state.source_log import SourceLog
from mirror.state.target_log import TargetLog
from mirror.state.wakeups import FlowWakeups
from mirror.state.work_share import WorkShare

OWNERS = (
    FlowState,
    InFlight,
    InFlightBudget,
    Leadership,
    MirroredPartition,
    MirroredProgress,
    OrdersInForce,
    Retries,
    ReverseFlow,
    Skips,
    SourceLog,
    TargetLog,
    FlowWakeups,
    WorkShare,
)
MOST_ATTRIBUTES = 15
ROOT = Path(mirror.__file__).parent


def owned_in(owners: Iterable[type]) -> dict[str, set[str]]:
    """Return the modules whose objects have an attribute of each name."""
    modules: dict[str, set[str]] = {}
    for owner in owners:
        for name in owner.__slots__:  # type: ignore[attr-defined]
            modules.setdefault(name, set()).add(owner.__module__)
    return modules


def attributes_of(target: ast.AST) -> Iterator[ast.Attribute]:
    """Yield the attributes that an assignment to this target sets."""
    match target:
        case ast.Attribute():
            yield target
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            for one in targets:
                yield from attributes_of(one)
        case ast.Starred(value=inner):
            yield from attributes_of(inner)
        case _:
            pass


def targets_of(statement: ast.AST) -> list[ast.expr]:
    match statement:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return targets
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return [target]
        case ast.For(target=target) | ast.AsyncFor(target=target):
            return [target]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return [item.optional_vars for item in items if item.optional_vars is not None]
        case _:
            return []


def assigned_from_outside(source: str, module: str) -> list[str]:
    """Return the assignments of attributes that are another module's to change."""
    owned = owned_in(OWNERS)
    found = []
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.Call) and ast.unparse(statement.func) == "setattr":
            found.append(ast.unparse(statement))
        for target in targets_of(statement):
            for attribute in attributes_of(target):
                is_own = isinstance(attribute.value, ast.Name) and attribute.value.id == "self"
                if not is_own and module not in owned.get(attribute.attr, {module}):
                    found.append(ast.unparse(attribute))
    return found


def test_no_module_assigns_an_attribute_of_what_a_flow_shares() -> None:
    found = {}
    for path in ROOT.rglob("*.py"):
        module = ".".join(("mirror", *path.relative_to(ROOT).with_suffix("").parts))
        if assigned := assigned_from_outside(path.read_text(), module):
            found[module] = assigned
    assert not found


@pytest.mark.parametrize(
    "source",
    [
        "partition.attempt += 1",
        "self._flow.budget.total -= size",
        "one.partition.cursor = cursor",
        "partition.in_flight.sent_count, other = 1, 2",
        "flow.share.leads: bool = True",
        "del partition.skips.pass_over",
        "for flow.config in configs: pass",
        "with scope as flow.throttle: pass",
        "setattr(partition, 'attempt', 3)",
    ],
)
def test_an_assignment_from_outside_is_found(source: str) -> None:
    assert assigned_from_outside(source, "mirror.forward.target")


def test_an_owner_may_assign_its_own() -> None:
    own = "self._budget.total += size\nself.sent_count -= 1\nwindow.title = 3"
    assert not assigned_from_outside(own, InFlight.__module__)


@pytest.mark.parametrize("owner", OWNERS)
def test_no_object_that_a_flow_shares_is_several(owner: type) -> None:
    assert len(owner.__slots__) <= MOST_ATTRIBUTES  # type: ignore[attr-defined]
