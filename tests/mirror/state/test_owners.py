"""No module changes an object that the tasks of a flow share: its owner does, by its methods.

Neither an attribute is assigned from outside, nor what it holds (a dict, a set, a list) changed.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

import mirror
from mirror.flow.flow_state import FlowState
from mirror.state.flow_partitions import FlowPartitions
from mirror.state.in_flight import InFlight, InFlightBudget
from mirror.state.interruptions import Interruptions
from mirror.state.leadership import PartitionLeaders
from mirror.state.live_config import LiveConfig
from mirror.state.measurements import FlowMeasurements
from mirror.state.mirrored_progress import MirroredProgress
from mirror.state.orders_in_force import OrdersInForce
from mirror.state.partition import MirroredPartition
from mirror.state.retries import Retries
from mirror.state.reverse_flow import ReverseFlow
from mirror.state.skips import Skips
from mirror.state.source_log import SourceLog
from mirror.state.target_log import TargetLog
from mirror.state.throttle import Throttle
from mirror.state.wakeups import FlowGate, FlowWakeups
from mirror.state.work_share import WorkShare

OWNERS = (
    FlowGate,
    FlowMeasurements,
    FlowPartitions,
    FlowState,
    InFlight,
    InFlightBudget,
    Interruptions,
    PartitionLeaders,
    LiveConfig,
    MirroredPartition,
    MirroredProgress,
    OrdersInForce,
    Retries,
    ReverseFlow,
    Skips,
    SourceLog,
    TargetLog,
    Throttle,
    FlowWakeups,
    WorkShare,
)
MOST_ATTRIBUTES = 15
ROOT = Path(mirror.__file__).parent
MUTATORS: Final = frozenset(
    {
        *("add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert"),
        *("move_to_end", "pop", "popitem", "popleft", "remove", "reverse", "rotate", "setdefault"),
        *("sort", "subtract", "update", "difference_update", "intersection_update"),
        "symmetric_difference_update",
    }
)
"""Methods of Python's dicts, sets, lists, deques and counters that change them."""
COMMON: Final = frozenset({"bytes", "config", "end", "measurements", "records", "source", "target"})
"""Names that objects of other folders have as well: what they hold is not looked at by name."""


def owned_in(owners: Iterable[type]) -> dict[str, set[str]]:
    """Return the modules whose objects have an attribute of each name."""
    modules: dict[str, set[str]] = {}
    for owner in owners:
        for name in owner.__slots__:  # type: ignore[attr-defined]
            modules.setdefault(name, set()).add(owner.__module__)
    return modules


OWNED = owned_in(OWNERS)


def assigned(target: ast.AST) -> Iterator[ast.Attribute]:
    """Yield the attributes that an assignment to this target sets."""
    match target:
        case ast.Attribute():
            yield target
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            for each in targets:
                yield from assigned(each)
        case ast.Starred(value=inner):
            yield from assigned(inner)
        case _:
            pass


def filled(target: ast.AST) -> Iterator[ast.expr]:
    """Yield what an assignment to this target, or its deletion, changes an item of."""
    match target:
        case ast.Subscript(value=container):
            yield container
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            for each in targets:
                yield from filled(each)
        case ast.Starred(value=inner):
            yield from filled(inner)
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


def is_own(attribute: ast.Attribute) -> bool:
    return isinstance(attribute.value, ast.Name) and attribute.value.id == "self"


def is_foreign(attribute: ast.Attribute, module: str) -> bool:
    """Whether the attribute is of an object that another module owns."""
    return not is_own(attribute) and module not in OWNED.get(attribute.attr, {module})


def held_by(tree: ast.AST) -> dict[str, ast.expr]:
    """Return what local names of a function stand for, where that is an attribute of something."""
    aliases: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() as value):
                aliases[name] = value
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                for each, held in zip(names, values, strict=False):
                    if isinstance(each, ast.Name) and isinstance(held, ast.Attribute):
                        aliases[each.id] = held
            case _:
                pass
    return aliases


def mutated(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the containers that a statement or call changes."""
    for target in targets_of(node):
        yield from filled(target)
    match node:
        case ast.Call(func=ast.Attribute(value=container, attr=name)) if name in MUTATORS:
            yield container
        case _:
            pass


def changed_from_outside(source: str, module: str) -> list[str]:
    """Return the assignments and mutations that are another module's to make."""
    changes = []
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
            changes.append(ast.unparse(node))
        for target in targets_of(node):
            changes += [ast.unparse(one) for one in assigned(target) if is_foreign(one, module)]
    functions: list[ast.AST] = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for function in functions or [tree]:
        aliases = held_by(function)
        for node in ast.walk(function):
            for container in mutated(node):
                held = container
                if isinstance(container, ast.Name):
                    held = aliases.get(container.id, container)
                if (
                    isinstance(held, ast.Attribute)
                    and held.attr not in COMMON
                    and is_foreign(held, module)
                ):
                    changes.append(ast.unparse(node))
    return changes


def test_no_module_changes_what_a_flow_shares_but_its_owner() -> None:
    changes = {}
    for path in ROOT.rglob("*.py"):
        module = ".".join(("mirror", *path.relative_to(ROOT).with_suffix("").parts))
        if changed := changed_from_outside(path.read_text(), module):
            changes[module] = changed
    assert not changes


def test_only_its_own_folder_takes_the_state_of_a_flow_whole() -> None:
    takers = {
        path.relative_to(ROOT).parts[0]
        for path in ROOT.rglob("*.py")
        if any(
            isinstance(node, ast.ImportFrom) and node.module == FlowState.__module__
            for node in ast.walk(ast.parse(path.read_text()))
        )
    }
    assert takers == {"flow"}


@pytest.mark.parametrize(
    "source",
    [
        "partition.attempt += 1",
        "self._parts.budget.total -= size",
        "one.partition.cursor = cursor",
        "partition.in_flight.sent_count, other = 1, 2",
        "flow.share.leads: bool = True",
        "del partition.skips.pass_over",
        "for live.current in configs: pass",
        "with scope as flow.throttle: pass",
        "setattr(partition, 'attempt', 3)",
    ],
)
def test_an_assignment_from_outside_is_seen(source: str) -> None:
    assert changed_from_outside(source, "mirror.forward.target")


@pytest.mark.parametrize(
    "source",
    [
        "flow.partitions.own[name] = partition",
        "del self._parts.partitions.peers[name]",
        "self._partitions.peers.pop(name, None)",
        "measurements.fetch_errors[name] += 1",
        "partition.in_flight.queue.clear()",
        "flow.orders.begun_anew.add(topic)",
        "reverse.loop_ids.update(ids)",
        "def f(partition):\n    runs = partition.target.untold_runs\n    runs.append((1, 2))",
        "def f(share):\n    seen, own = share.seen, 3\n    seen |= {1}\n    seen.discard(2)",
        "first, flow.share.peers_gone[name] = 1, 2",
    ],
)
def test_a_mutation_from_outside_is_seen(source: str) -> None:
    assert changed_from_outside(source, "mirror.forward.target")


def test_an_owner_may_change_its_own() -> None:
    own = (
        "self._budget.total += size\nself.sent_count -= 1\nwindow.title = 3\n"
        "self.queue.clear()\nrows.append(3)\nself._held[key] = 3"
    )
    assert not changed_from_outside(own, InFlight.__module__)


@pytest.mark.parametrize("owner", OWNERS)
def test_no_object_that_a_flow_shares_is_several(owner: type) -> None:
    assert len(owner.__slots__) <= MOST_ATTRIBUTES  # type: ignore[attr-defined]
