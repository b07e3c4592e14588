"""A fake that has fallen behind what it stands for is found."""

from tests.doubles.likeness import unlike


class Real:
    def __init__(self, one: int) -> None: ...

    @property
    def state(self) -> int:
        return 1

    def send(self, what: str, *, twice: bool) -> None: ...

    def renamed(self) -> None: ...


class Fake:
    def __init__(self, _: int) -> None: ...

    @property
    def state(self) -> int:
        return 2

    def send(self, _: str, *, twice: bool) -> None: ...


class Behind(Fake):
    state = 2

    def __init__(self) -> None: ...

    def send(self, _: str) -> None: ...  # type: ignore[override]

    def old_name(self) -> None: ...

    def _own(self) -> None: ...


def test_a_fake_of_the_same_shape_is_like_it() -> None:
    assert unlike(Fake, Real) == []


def test_what_was_renamed_or_takes_something_else_is_told() -> None:
    assert [told.split()[0] for told in unlike(Behind, Real)] == ["__init__", "Real", "send"]
