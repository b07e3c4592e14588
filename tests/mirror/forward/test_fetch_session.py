"""A fetch session against a broker that keeps its part of KIP-227, and loses sessions at will."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from mirror.forward.fetch_session import FetchSession, PartitionKey, Question
from tests.mirror.forward.session_broker import Broker
from wire.hot.fetch import Session, TopicKey, Wanted

TOPICS: tuple[TopicKey, ...] = (("a", UUID(int=1)), ("b", UUID(int=2)), ("b", UUID(int=3)))
PLACES = st.tuples(st.sampled_from(TOPICS), st.integers(0, 3))
WISHES = st.dictionaries(PLACES, st.builds(Wanted, st.just(0), st.integers(0, 2), st.just(9)))
LUCK = st.sampled_from(["session", "no session", "forgotten", "answer lost"])


def fitting(wish: dict[PartitionKey, Wanted]) -> dict[PartitionKey, Wanted]:
    return {place: one._replace(partition=place[1]) for place, one in wish.items()}


@given(st.lists(st.tuples(WISHES, LUCK)))
def test_the_broker_always_knows_exactly_what_is_wanted(
    rounds: list[tuple[dict[PartitionKey, Wanted], str]],
) -> None:
    broker, session = Broker(), FetchSession()
    for wish, luck in rounds:
        wanted = fitting(wish)
        if luck == "forgotten":
            broker.sessions.clear()
        heard = broker.hear(session.ask(wanted), opens=luck != "no session")
        if heard is None:
            assert luck == "forgotten"
            session.end()
            heard = broker.hear(session.ask(wanted), opens=True)
        assert heard is not None
        assert heard[1] == wanted
        if luck == "answer lost":
            session.end()
        else:
            session.answered(heard[0])


def test_a_steady_request_is_empty_and_a_new_offset_names_one_partition() -> None:
    session, key = FetchSession(), TOPICS[0]
    wanted = {(key, index): Wanted(index, 5, 9) for index in range(3)}
    session.ask(wanted)
    session.answered(4)
    assert session.ask(wanted) == Question(Session(4, 1), {}, {})
    session.answered(4)
    wanted[key, 1] = Wanted(1, 6, 9)
    assert session.ask(wanted) == Question(Session(4, 2), {key: [Wanted(1, 6, 9)]}, {})


def test_an_answer_that_was_not_used_is_asked_for_again() -> None:
    session, key = FetchSession(), TOPICS[0]
    wanted = {(key, 0): Wanted(0, 5, 9)}
    session.ask(wanted)
    session.answered(4)
    session.say_again((key, 0))
    assert session.ask(wanted).wanted == {key: [Wanted(0, 5, 9)]}


def test_what_is_to_be_said_again_and_is_not_wanted_any_more_is_forgotten() -> None:
    session, key = FetchSession(), TOPICS[0]
    one, other = (Wanted(index, 5, 9) for index in range(2))
    session.ask({(key, 0): one, (key, 1): other})
    session.answered(4)
    session.say_again((key, 0))
    assert session.ask({(key, 1): other}) == Question(Session(4, 1), {}, {key: [0]})
    session.answered(4)
    session.say_again((key, 1))
    assert session.ask_some({(key, 1): None}) == Question(Session(4, 2), {}, {key: [1]})


def test_a_session_that_ends_is_named_once_more_to_be_dropped() -> None:
    session, wanted = FetchSession(), {(TOPICS[0], 0): Wanted(0, 5, 9)}
    session.ask(wanted)
    session.answered(4)
    session.end()
    assert session.ask(wanted) == Question(Session(4, 0), {TOPICS[0]: [Wanted(0, 5, 9)]}, {})
