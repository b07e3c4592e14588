"""The drill's pair without faults: what it asks of the sites."""

from time import monotonic

from tests.dc_yaml import NOWHERE
from tests.drill.audit.clean import takes


def test_a_site_that_refuses_a_record_leaves_no_exception_behind() -> None:
    before = monotonic()
    assert not takes({"bootstrap.servers": NOWHERE})
    assert monotonic() > before
