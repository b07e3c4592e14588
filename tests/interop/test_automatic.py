"""Three `failover serve` at three places, and two sites: what they promote by themselves."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic
from typing import Final

import pytest
import yaml

from failover.automatic.votes import Sight, Vote
from failover.journal.steps import PromotionKind, PromotionState
from tests.failover.promoting import WitnessView, open_witness, run_mirror, tell, wait_mirroring
from tests.failover.two_sites import Sites, create_topic, pause, produce, run_sites, wait_length
from tests.forked import start_program
from tests.interop.closing import let_applications_in, stage, write_as_user
from tests.interop.peers import KAFKA_4_KRAFT, Kind
from tests.secured_cluster import USER
from wire.net.security import Mechanism

pytestmark = pytest.mark.matrix(subject="Promotions that begin by themselves")

VOTERS: Final = {"a": "dc1", "b": "dc2", "c": "office"}
AFTER_MS: Final = 5_000
PATIENCE_S: Final = 120
NOWHERE: Final = "127.0.0.1:1"


@pytest.fixture
def sites(witness: str, tmp_path: Path) -> Iterator[Sites]:
    with run_sites(tmp_path, witness) as running:
        yield running


def configure(sites: Sites, folder: Path, path: str, **failover: object) -> Path:
    """Write a file by which promotions begin by themselves."""
    return by_themselves(sites.configure(folder, path), **failover)


def by_themselves(file: Path, **failover: object) -> Path:
    """Change a file so that promotions begin by themselves."""
    document = yaml.safe_load(file.read_text())
    document["failover"] |= {
        "loss_budget": {"records": 100, "seconds": 60},
        "source_lost_after_ms": 2_000,
        "automatic": {"voters": VOTERS, "after_ms": AFTER_MS, "cooldown_ms": 60_000},
        **failover,
    }
    file.write_text(yaml.safe_dump(document))
    return file


def cut_off_from_dc1(file: Path, folder: Path) -> Path:
    """Return the file of a place from which nobody reaches dc1."""
    document = yaml.safe_load(file.read_text())
    document["clusters"]["dc1"]["bootstrap"] = NOWHERE
    cut = folder / "cut.yaml"
    cut.write_text(yaml.safe_dump(document))
    return cut


@contextmanager
def run_voters(folder: Path, **files: Path) -> Iterator[None]:
    """Run `failover serve` for each voter, by its file, until the block ends."""
    with ExitStack() as stack:
        for name, file in files.items():
            log = stack.enter_context((folder / f"{name}.log").open("ab"))
            daemon = start_program("failover.cli", "serve", "--voter", name, str(file), output=log)
            stack.callback(daemon.wait, 60)
            stack.callback(daemon.terminate)
        yield


def votes(witness: WitnessView) -> dict[str, Vote]:
    found = {}
    for name in VOTERS:
        node = witness.paths.vote(name)
        if witness.client.exists(node):
            found[name] = Vote.decode(witness.client.get(node)[0])
    return found


def wait_votes(witness: WitnessView, **sights: Sight) -> None:
    """Wait until each voter sees this, and its time is over."""
    deadline = monotonic() + PATIENCE_S
    while True:
        present = votes(witness)
        aged = {name: one for name, one in present.items() if one.number - one.since >= 4}
        if {name: vote.sees for name, vote in aged.items()} == sights:
            return
        assert monotonic() < deadline, present
        pause(0.2)


def test_a_line_that_is_cut_for_one_voter_moves_nobody(sites: Sites, tmp_path: Path) -> None:
    file = configure(sites, tmp_path, "/cut")
    create_topic(sites.dc1, "orders")
    with (
        run_mirror(file),
        open_witness(sites.witness, "/cut") as witness,
        run_voters(tmp_path, a=file, b=file, c=cut_off_from_dc1(file, tmp_path)),
    ):
        wait_mirroring(file)
        produce(sites.dc1, "orders", range(10))
        # The mirror hears dc1 all the time, and so the voter that is cut off says so.
        wait_votes(witness, a=Sight.ANSWERS, b=Sight.ANSWERS, c=Sight.ANSWERS)
        assert "the mirror of dc1->dc2 hears it" in votes(witness)["c"].why
        assert "voter    a (dc1): answers" in tell("status", str(file)).output
        assert witness.active().site == "dc1"
        assert not witness.client.exists(witness.paths.journals)


@pytest.mark.parametrize("has_rehearsals", [False, True])
def test_a_site_that_is_gone_for_all_is_left_once_nobody_holds(
    sites: Sites, tmp_path: Path, has_rehearsals: bool
) -> None:
    """Also beside the set of rehearsals, which stays where it is."""
    path = "/gone-beside-rehearsals" if has_rehearsals else "/gone"
    file = sites.configure(tmp_path, path, is_both_ways=has_rehearsals)
    by_themselves(file, **({"rehearsal": {}} if has_rehearsals else {}))
    create_topic(sites.dc1, "orders")
    with (
        run_mirror(file),
        open_witness(sites.witness, path) as witness,
        run_voters(tmp_path, a=file, b=file, c=file),
    ):
        wait_mirroring(file)
        produce(sites.dc1, "orders", range(50))
        wait_length(sites.dc2, "orders", 50)
        wait_votes(witness, a=Sight.ANSWERS, b=Sight.ANSWERS, c=Sight.ANSWERS)
        assert tell("hold", "--reason", "not tonight", str(file)).status == 0
        sites.dc1.kill()
        wait_votes(witness, a=Sight.GONE, b=Sight.GONE, c=Sight.GONE)
        assert all("not tonight" in vote.in_the_way for vote in votes(witness).values())
        assert witness.active().site == "dc1"
        assert not witness.client.exists(witness.paths.journals)

        assert tell("release", str(file)).status == 0
        wait_promoted(witness, tmp_path)


def wait_promoted(witness: WitnessView, folder: Path) -> None:
    """Wait until the voters have promoted dc2, and look at the journal."""
    deadline = monotonic() + PATIENCE_S
    while witness.active().site == "dc1":
        logs = [(folder / f"{name}.log").read_text()[-3000:] for name in VOTERS]
        assert monotonic() < deadline, logs
        pause(0.2)
    while witness.journals()[-1].state is PromotionState.RUNNING:
        assert monotonic() < deadline, witness.journals()
        pause(0.2)
    [journal] = witness.journals()
    assert (journal.site, journal.kind) == ("dc2", PromotionKind.SOURCE_LOST)
    assert journal.state is PromotionState.DONE
    what = journal.given[0].what
    assert what.startswith("failover serve: automatic, voters ")
    assert ": promote dc2 --source-lost" in what


@pytest.mark.parametrize("kind", [KAFKA_4_KRAFT], ids=str)
def test_apache_kafka_behind_tls_and_logins_is_left_once_it_is_gone_for_all(
    kind: Kind, tmp_path: Path
) -> None:
    ours = {"super.users": f"User:ANONYMOUS;User:{USER}"}
    with stage(tmp_path, kind, kind, more=ours) as at:
        document = yaml.safe_load(at.file.read_text())
        document["clusters"] = {
            "dc1": at.dc1.section("SASL_SSL", Mechanism.SCRAM_SHA_512),
            "dc2": at.dc2.section("SASL_SSL", Mechanism.SCRAM_SHA_512),
        }
        at.file.write_text(yaml.safe_dump(document))
        file = by_themselves(at.file)
        let_applications_in(at)
        with (
            run_mirror(file),
            open_witness(at.witness, "/closing") as witness,
            run_voters(tmp_path, a=file, b=file, c=file),
        ):
            wait_mirroring(file)
            assert write_as_user(at.dc1) is None
            wait_votes(witness, a=Sight.ANSWERS, b=Sight.ANSWERS, c=Sight.ANSWERS)
            at.dc1.cluster.kill()
            wait_promoted(witness, tmp_path)
            assert write_as_user(at.dc2) is None
