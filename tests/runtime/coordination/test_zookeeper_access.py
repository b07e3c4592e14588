"""Who we are to ZooKeeper: identities, rights of nodes, and what others may do beyond them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.coordination.node_rights import unexpected_rights
from runtime.coordination.zookeeper_access import (
    ALL,
    ANYBODY,
    OPEN,
    Grant,
    Identity,
    Login,
    LoginMechanism,
    NodeRight,
    ZooKeeperAccess,
    digest_identity,
)

OURS = ZooKeeperAccess(
    login=Login(mechanism=LoginMechanism.DIGEST, username="dr", password="secret"),  # noqa: S106
    shared={
        "/p/active": Grant(Identity("sasl", "apps"), NodeRight.READ),
        "/p/groups/": Grant(Identity("sasl", "apps"), ALL),
    },
)


def test_the_identity_of_a_digest_is_what_the_server_makes_of_it() -> None:
    """As `DigestAuthenticationProvider.generateDigest("super:test")` prints it."""
    assert str(digest_identity("super", "test")) == "digest:super:D/InIHSb7yEEbrWz8b9l71RjZJU="


@given(st.text(), st.text())
def test_an_identity_is_read_back_from_what_is_printed_of_it(user: str, password: str) -> None:
    identity = digest_identity(user, password)
    if user:
        assert Identity.parse(str(identity)) == identity
    else:
        with pytest.raises(ValueError, match="neither"):
            Identity.parse(str(identity))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "apps",
        "digest:apps",
        "digest:apps:short",
        "digest::D/InIHSb7yEEbrWz8b9l71RjZJU=",
        "sasl:",
        "world:anyone",
        "digest:apps:D/InIHSb7yEEbrWz8b9l71RjZJU\n=",
    ],
)
def test_what_names_nobody_is_no_identity(text: str) -> None:
    with pytest.raises(ValueError, match="neither digest:<user>:<hash> nor sasl:<user>"):
        Identity.parse(text)


def test_without_a_login_nodes_are_everybodys() -> None:
    assert OPEN.grants("/p/active") == (Grant(ANYBODY, ALL),)
    assert unexpected_rights("/p/active", (Grant(ANYBODY, ALL),), OPEN) is None


def test_nodes_are_ours_alone_but_for_what_applications_need() -> None:
    own = Grant(digest_identity("dr", "secret"), ALL)
    apps = Identity("sasl", "apps")
    assert OURS.grants("/p/pair") == (own,)
    assert OURS.grants("/p/active") == (own, Grant(apps, NodeRight.READ))
    assert OURS.grants("/p/groups/g/one") == (own, Grant(apps, ALL))
    assert OURS.grants("/p/groups") == (own,)


@pytest.mark.parametrize(
    ("path", "rights", "said"),
    [
        ("/p/active", Grant(ANYBODY, NodeRight.READ), "/p/active: world:anyone may read"),
        (
            "/p/active",
            Grant(Identity("sasl", "apps"), ALL),
            "/p/active: sasl:apps may write+create+delete+admin",
        ),
        ("/p/pair", Grant(Identity("sasl", "apps"), NodeRight.READ), "/p/pair: sasl:apps may read"),
        (
            "/p/x",
            Grant(digest_identity("dr", "old"), NodeRight.WRITE | NodeRight.ADMIN),
            f"/p/x: {digest_identity('dr', 'old')} may write+admin",
        ),
    ],
)
def test_what_others_may_do_beyond_what_they_should_is_told(
    path: str, rights: Grant, said: str
) -> None:
    foreign = unexpected_rights(path, (*OURS.grants(path), rights), OURS)
    assert str(foreign) == said


def test_rights_that_applications_should_have_and_have_not_are_told() -> None:
    own = Grant(digest_identity("dr", "secret"), ALL)
    assert str(unexpected_rights("/p/active", (own,), OURS)) == "/p/active: sasl:apps may not read"
    some = (own, Grant(Identity("sasl", "apps"), NodeRight.READ | NodeRight.CREATE))
    told = "/p/groups/g: sasl:apps may not write+delete+admin"
    assert str(unexpected_rights("/p/groups/g", some, OURS)) == told


def test_nodes_are_of_both_passwords_while_programs_have_the_one_or_the_other() -> None:
    login = Login(
        mechanism=LoginMechanism.DIGEST,
        username="dr",
        password="new",  # noqa: S106
        previous_password="old",  # noqa: S106
    )
    both = (digest_identity("dr", "new"), digest_identity("dr", "old"))
    grants = tuple(Grant(identity, ALL) for identity in both)
    assert ZooKeeperAccess(login=login).grants("/p/pair") == grants
    assert ZooKeeperAccess(login=replace(login, previous_password="new")).grants("/p") == (  # noqa: S106
        grants[0],
    )


def test_rights_that_are_as_they_should_be_are_nothing_to_tell() -> None:
    for path in ("/p/active", "/p/pair", "/p/groups/g"):
        assert unexpected_rights(path, OURS.grants(path), OURS) is None


def test_a_password_is_never_shown() -> None:
    assert "secret" not in repr(OURS)
