"""Votes as they lie in the witness, and the numbers that stand for time in them."""

import json
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.automatic.votes import Polling, Sight, Vote, read_votes, vote_lines, votes_document
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import ZooKeeper
from tests.doubles.memory_nodes import MemoryNodes

PATHS = WitnessPaths(root="/r")
VOTERS = {"a": "dc1", "b": "dc2", "c": "office"}
GONE = Vote(place="dc1", run="r", number=9, since=4, epoch=3, sees=Sight.GONE, why="dc1: silent")


def test_a_vote_is_read_as_it_was_written() -> None:
    assert Vote.decode(GONE.encode()) == GONE
    counted = replace(GONE, since_last_ms=90_000)
    assert Vote.decode(counted.encode()) == counted
    earlier = json.loads(GONE.encode())
    del earlier["since_last_ms"]
    assert Vote.decode(json.dumps(earlier).encode()) == GONE, "of a version before it was told"


@given(st.binary() | st.sampled_from([b"null", b"[]", b'{"place": 1}']))
def test_garbage_is_no_vote(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        Vote.decode(data)


def test_what_a_voter_sees_begins_anew_when_it_changes_or_another_site_is_active() -> None:
    polling = Polling(place="dc1")
    looks = [(Sight.GONE, 3), (Sight.GONE, 3), (Sight.ANSWERS, 3), (Sight.GONE, 3), (Sight.GONE, 4)]
    votes = [polling.vote(sees, "", epoch=epoch, in_the_way="") for sees, epoch in looks]
    assert [vote.number for vote in votes] == [1, 2, 3, 4, 5]
    assert [vote.since for vote in votes] == [1, 1, 3, 4, 5]
    assert Polling(place="dc1").run != polling.run


async def test_a_voter_of_another_place_and_one_that_nobody_can_read_are_missing() -> None:
    nodes = MemoryNodes()
    for name, data in {
        "a": GONE.encode(),
        "b": replace(GONE, place="elsewhere").encode(),
        "c": b"garbage",
        "stranger": GONE.encode(),
    }.items():
        await nodes.create(PATHS.vote(name), data, make_parents=True)
    assert await read_votes(cast("ZooKeeper", nodes), PATHS, VOTERS) == {"a": GONE}


def test_the_status_shows_each_voter_and_what_is_in_the_way() -> None:
    votes = {"a": replace(GONE, in_the_way="promotions are held"), "b": GONE}
    assert list(vote_lines(votes, VOTERS)) == [
        "voter    a (dc1): gone, dc1: silent; in the way: promotions are held",
        "voter    b (dc2): gone, dc1: silent",
        "voter    c (office): no vote",
    ]
    assert votes_document(votes, VOTERS)["c"] is None
