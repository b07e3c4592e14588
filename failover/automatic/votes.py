"""What a voter sees of the active site and the standby, as its ephemeral node in the witness.

    {"place": "office",       where it looks from
     "run": "9f3c",           of one process; another one begins anew
     "number": 17,            grows with each look
     "since": 9,              the number with which what it sees began
     "epoch": 3,              of the active site that it looked at
     "sees": "gone",          or "answers" or "unknown"
     "why": "dc1: no answer within 3 s",
     "in_the_way": "for 12 of 60 s",   what keeps this voter from promoting, by its own count
     "since_last_ms": 90000}  for how long the last promotion is over, by its count; null: none was

Numbers stand for times: nobody compares clocks of two machines.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final, Self
from uuid import uuid4

from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import ZooKeeper
from runtime.process.output import escaped
from runtime.untrusted_json import read_json, text, whole_number
from wire.values import frozen

MOST_CHARACTERS: Final = 500
"""Of a reason in a vote."""


class Sight(StrEnum):
    """What a voter has seen."""

    GONE = "gone"
    """Nobody at the active site answers, the mirror hears nothing of it, the standby is healthy."""
    ANSWERS = "answers"
    """The active site is there for this voter, or for the mirror."""
    UNKNOWN = "unknown"
    """Anything else: the standby is not healthy, or the active site refuses us."""


@frozen
class Vote:
    """One look of a voter."""

    place: str
    run: str
    number: int
    since: int
    epoch: int
    sees: Sight
    why: str
    in_the_way: str = ""
    since_last_ms: int | None = None

    def encode(self) -> bytes:
        """Return the JSON of the node."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return what a node says; raises ValueError."""
        try:
            found = read_json(data)
            since_last_ms = found.get("since_last_ms")  # not in a vote of an earlier version
            return cls(
                place=text(found["place"]),
                run=text(found["run"]),
                number=whole_number(found["number"]),
                since=whole_number(found["since"]),
                epoch=whole_number(found["epoch"]),
                sees=Sight(found["sees"]),
                why=text(found["why"])[:MOST_CHARACTERS],
                in_the_way=text(found["in_the_way"])[:MOST_CHARACTERS],
                since_last_ms=None if since_last_ms is None else whole_number(since_last_ms),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no valid vote: {error!r}") from error


@dataclass(slots=True)
class Polling:
    """Numbers the looks of one process."""

    place: str
    run: str = field(default_factory=lambda: uuid4().hex)
    _last: Vote | None = None

    def vote(
        self,
        sees: Sight,
        why: str,
        *,
        epoch: int,
        in_the_way: str,
        since_last_ms: int | None = None,
    ) -> Vote:
        """Return the next vote: it goes on with the last one where it sees the same."""
        last = self._last
        number = 1 if last is None else last.number + 1
        is_same = last is not None and (last.sees, last.epoch) == (sees, epoch)
        self._last = Vote(
            place=self.place,
            run=self.run,
            number=number,
            since=last.since if last is not None and is_same else number,
            epoch=epoch,
            sees=sees,
            why=why[:MOST_CHARACTERS],
            in_the_way=in_the_way[:MOST_CHARACTERS],
            since_last_ms=since_last_ms,
        )
        return self._last


async def read_votes(
    zookeeper: ZooKeeper, paths: WitnessPaths, voters: Mapping[str, str]
) -> dict[str, Vote]:
    """Return the votes of these voters that can be read, from the places they have to be from.

    One of another place has another file. Raises ZooKeeperFault.
    """
    votes: dict[str, Vote] = {}
    for name, place in voters.items():
        node = await zookeeper.get(paths.vote(name))
        try:
            vote = None if node is None else Vote.decode(node.data)
        except ValueError:
            continue  # it is missing, and shown so
        if vote is not None and vote.place == place:
            votes[name] = vote
    return votes


def vote_lines(votes: Mapping[str, Vote], voters: Mapping[str, str]) -> Iterator[str]:
    """Yield what `failover status` says of each voter."""
    for name, place in voters.items():
        vote = votes.get(name)
        if vote is None:
            yield f"voter    {name} ({place}): no vote"
        else:
            waits = f"; in the way: {escaped(vote.in_the_way)}" if vote.in_the_way else ""
            yield f"voter    {name} ({place}): {vote.sees}, {escaped(vote.why)}{waits}"


def votes_document(votes: Mapping[str, Vote], voters: Mapping[str, str]) -> dict[str, object]:
    """Return the JSON form; null for a voter that does not vote."""
    return {name: asdict(votes[name]) if name in votes else None for name in voters}
