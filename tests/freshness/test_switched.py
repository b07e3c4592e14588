"""What the table of switches counts."""

from tests.freshness.switched import Group, Switched, all_exact, compare

LOG = [b"a", b"b", b"c", b"d"]


def switched(
    consumed: list[bytes], delivered: list[bytes], log: list[bytes], *, is_amid: bool = False
) -> Switched:
    group = Group(name="g", lag=0, consumed=consumed, position=0, is_amid=is_amid)
    return compare("t", "s", group, delivered, wanted=set(log), log=log)


def test_a_group_that_goes_on_at_its_next_record_is_exact() -> None:
    found = switched(LOG[:2], LOG[2:], LOG)
    assert (found.reread, found.least, found.skipped) == (0, 0, 0)
    assert found.is_exact


def test_a_record_delivered_again_is_re_read_whether_before_or_twice_behind_the_switch() -> None:
    assert switched(LOG[:2], LOG[1:], LOG).reread == 1
    assert switched(LOG[:2], [*LOG[2:], b"d"], LOG).reread == 1
    assert not switched(LOG[:2], LOG[1:], LOG).is_exact


def test_a_record_never_delivered_is_skipped() -> None:
    found = switched(LOG[:2], LOG[3:], LOG)
    assert found.skipped == 1
    assert not found.is_exact


def test_where_orders_differ_only_what_no_position_spares_may_be_re_read() -> None:
    other = [b"a", b"c", b"b", b"d"]
    found = switched(LOG[:2], other[1:], other, is_amid=True)
    assert (found.reread, found.least, found.skipped) == (1, 1, 0)
    assert found.is_exact
    assert not switched(LOG[:2], other, other, is_amid=True).is_exact
    assert not switched(LOG[:2], other[1:], other).is_exact, "at rest both logs agree"


def test_nothing_found_is_no_success() -> None:
    assert not all_exact([])
    assert all_exact([switched(LOG[:2], LOG[2:], LOG)])
