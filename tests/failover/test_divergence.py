"""Sites that disagree behind a disaster: each record is in both logs, or on a list by offset."""

from pathlib import Path

import pytest

from tests.failover.both_ways import configure_both_ways, wait_logged, wait_same_logs
from tests.failover.promoting import run_mirror, tell, wait_mirroring
from tests.failover.sites import (
    Sites,
    create_topic,
    produce,
    read_all,
    values_of,
    wait_length,
)
from tests.failover.test_failback import restart

pytestmark = pytest.mark.integration


def test_foreign_records_on_an_open_standby_do_not_hide_what_a_lost_site_had(
    mortal_sites: Sites, tmp_path: Path
) -> None:
    """3 records on dc2 that are nobody's copy, and 5 acknowledged on dc1 that have no copy."""
    sites, topic = mortal_sites, "open-standby"
    create_topic(sites.dc1, topic)
    file = configure_both_ways(sites, tmp_path, "/p-open-standby", topic)
    with run_mirror(file) as daemon:
        wait_mirroring(file)
        produce(sites.dc1, topic, range(20))
        wait_same_logs(sites, topic, 20)
        daemon.kill()
        daemon.wait()
    produce(sites.dc2, topic, range(900, 903))
    produce(sites.dc1, topic, range(20, 25))
    sites.dc1.kill()
    ended = tell("promote", "dc2", str(file), "--source-lost")
    assert ended.status == 1, ended
    assert f"{topic}-0: mirrored up to dc1 offset 20 (dc2 20)" in ended.output
    assert f"dc2 {topic}-0 holds records at offsets 20 to 22" in ended.output
    produce(sites.dc2, topic, range(100, 104))
    sites.dc1.start()
    with run_mirror(file):
        wait_logged(file, f"{topic}-0: target diverged: the target holds offsets 20 to 24")
        restart(file, topic, "--skip")
        wait_length(sites.dc1, topic, 32)
    own = [*range(900, 903), *range(100, 104)]
    assert values_of(read_all(sites.dc2, topic)) == [*range(20), *own]
    assert values_of(read_all(sites.dc1, topic)) == [*range(25), *own]
