"""Values of `frozen` are what values of a frozen dataclass are, but for who keeps them frozen."""

import pickle
import re
from collections.abc import Callable
from copy import copy
from dataclasses import asdict, field, fields, replace
from functools import partial
from pathlib import Path

import pytest

from wire.values import frozen

CHECKOUT = Path(__file__).parents[2]


@frozen
class Order:
    number: int
    lines: list[str] = field(default_factory=list, compare=False)
    secret: str = field(default="1234", repr=False)
    doubled: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "doubled", 2 * self.number)


@frozen(kw_only=False)
class Place:
    row: int
    seat: int = 1
    hall: str = field(default="north", kw_only=True)


@frozen
class Urgent(Order):
    hours: int

    def __repr__(self) -> str:
        return f"urgent: {self.number}"


@frozen
class Nothing:
    pass


@frozen
class Counted:
    number: int
    seen: int = field(init=False, default=4)


def test_values_are_equal_by_the_fields_that_are_compared() -> None:
    order = Order(number=1, lines=["a"])
    assert order == Order(number=1, lines=["b"])
    assert hash(order) == hash(Order(number=1))
    assert order != Order(number=1, secret="other")  # noqa: S106 - no secret
    assert order != Urgent(number=1, hours=2)
    assert Nothing() == Nothing()
    assert len({Place(1), Place(1, 1), Place(1, hall="south")}) == 2


def test_a_value_shows_what_may_be_shown() -> None:
    assert repr(Order(number=3)) == "Order(number=3, lines=[], doubled=6)"
    assert repr(Place(1, 2)) == "Place(row=1, seat=2, hall='north')"
    assert repr(Urgent(number=3, hours=1)) == "urgent: 3", "what a class defines holds"


def test_defaults_are_each_values_own() -> None:
    assert Order(number=1).lines is not Order(number=2).lines
    assert Counted(number=1).seen == 4, "also of a field that nobody may give"


def test_what_is_done_to_dataclasses_is_done_to_values() -> None:
    order = Urgent(number=1, hours=2)
    assert replace(order, number=5).doubled == 10
    assert asdict(Place(4)) == {"row": 4, "seat": 1, "hall": "north"}
    assert [one.name for one in fields(Place)] == ["row", "seat", "hall"]
    assert copy(order) == order
    assert pickle.loads(pickle.dumps(order)) == order  # noqa: S301 - our own
    assert not hasattr(order, "__dict__")


def test_mypy_alone_refuses_to_set_a_field() -> None:
    """It would call the comment below unused, and fail, if it did not."""
    place = Place(1)
    place.row = 2  # type: ignore[misc]
    assert place == Place(2)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (Order, r"Order.__init__\(\) missing 1 required keyword-only argument: 'number'"),
        (partial(Order, 1), "takes 1 positional argument but 2 were given"),  # type: ignore[call-arg]
        (partial(Place, 1, 2, "south"), "takes from 2 to 3 positional arguments but 4 were given"),  # type: ignore[call-arg]
        (partial(Place, 1, rank=2), "unexpected keyword argument 'rank'"),  # type: ignore[call-arg]
    ],
)
def test_a_value_that_is_made_wrongly_is_refused(
    make: Callable[[], object], complaint: str
) -> None:
    for _ in range(2):  # before the first value of its class is made, or behind it
        with pytest.raises(TypeError, match=complaint):
            make()


def test_what_commands_load_is_not_frozen_at_each_start() -> None:
    """A frozen dataclass costs 3.9 million instructions where it is declared, `frozen` 0.4."""
    slow = re.compile(r"@dataclass\(frozen=True(?!.*order=True)")
    every = [
        file
        for room in ("wire", "runtime", "failover")
        for file in CHECKOUT.glob(f"{room}/**/*.py")
    ]
    assert len(every) > 200
    assert [str(file) for file in every if slow.search(file.read_text())] == []
