"""What is known of a switch's refusals: of users, of sites that keep no rights or tell none."""

from runtime.rights.closing import FenceNote, closing, noting
from runtime.rights.outlook import Outlook, SiteRights, look_ahead
from runtime.rights.refused import Seen
from tests.runtime.rights.building import right
from wire.net.rights import READ, WRITE, Right

SEEN = Seen(topics={"t": "t"}, groups=())
ALICE, BOB = ("alice", "SCRAM-SHA-512"), ("bob", "SCRAM-SHA-256")


def site(
    name: str,
    *entries: Right,
    users: frozenset[tuple[str, str]] | str = frozenset(),
    why: str | None = None,
    is_open: bool = False,
) -> SiteRights:
    return SiteRights(site=name, entries=why or frozenset(entries), users=users, is_open=is_open)


def lines(source: SiteRights, target: SiteRights) -> list[str]:
    return list(look_ahead(source, target, SEEN).lines())


def test_scram_users_that_the_target_does_not_know_are_named_with_their_mechanism() -> None:
    found = look_ahead(
        site("dc1", users=frozenset({ALICE, BOB})), site("dc2", users=frozenset({BOB})), SEEN
    )
    assert found.missing_users == (ALICE,)
    [line] = found.lines()
    assert "dc1 that dc2 does not know" in line
    assert "alice (SCRAM-SHA-512)" in line
    assert found.summary(None) == "1 SCRAM users are not there: `mirror check` names them"


def test_nobody_is_refused_where_the_target_has_no_authorizer() -> None:
    target = site("dc2", why="dc2 has no authorizer", is_open=True)
    assert not lines(site("dc1", right(WRITE)), target)


def test_what_one_site_does_not_tell_is_said_to_be_unknown() -> None:
    target = site("dc2", why="dc2: to describe rights: CLUSTER_AUTHORIZATION_FAILED", users="no")
    assert lines(site("dc1", right(WRITE)), target) == [
        f"who would be refused after a switch is not known: {target.entries}",
        "which SCRAM users are missing is not known: no",
    ]
    found = look_ahead(site("dc1", why="dc1 has no authorizer", is_open=True), site("dc2"), SEEN)
    assert [one.words("dc2") for one in found.refused] == [
        "nobody has a right on dc2 to READ of topic t",
        "nobody has a right on dc2 to WRITE of topic t",
    ]
    assert found.unknown == ("who may do what at present is not known: dc1 has no authorizer",)


def test_a_fence_of_ours_refuses_nobody_after_the_switch_and_anothers_does() -> None:
    rights = right(WRITE), right(READ)
    fence = closing("t"), noting(closing("t"), FenceNote(client="mirror-dc2-dc1"))
    assert not lines(site("dc1", *rights, *fence), site("dc2", *rights))
    assert not lines(site("dc1", *rights), site("dc2", *rights, *fence))
    others = closing("t"), noting(closing("t"), FenceNote(client="mirror-dc2-dc1", was_closed=True))
    assert lines(site("dc1", *rights), site("dc2", *rights, *others))[0] == (
        "User:a would be refused on dc2: WRITE of topic t"
    )


def test_the_document_has_everything() -> None:
    found = look_ahead(
        site("dc1", right(WRITE), users=frozenset({ALICE})), site("dc2", right(READ)), SEEN
    )
    assert found.document == {
        "refused": [
            {
                "principal": "User:a",
                "host": "*",
                "kind": "topic",
                "operation": "WRITE",
                "names": ["t"],
            },
        ],
        "missing_scram_users": [["alice", "SCRAM-SHA-512"]],
        "withheld": [],
        "unknown": [],
    }
    assert found.principals == {"User:a": 1}
    assert Outlook(source="dc1", target="dc2").summary(None) is None
