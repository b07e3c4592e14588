"""Whose turn it is to be asked."""

from wire.net.turns import BrokerTurns, question

A, B, C = ("a", 1), ("b", 1), ("c", 1)


def ask(turns: BrokerTurns, asked: str | None, times: int = 1) -> list[tuple[str, int]]:
    """Ask whose turn it is, that often, and return who was asked."""
    met = []
    for _ in range(times):
        broker = turns.others(asked, [A, B, C])[0]
        turns.note(asked, broker)
        met.append(broker)
    return met


def test_lookups_of_one_thing_share_their_turns() -> None:
    assert question(None) is None
    assert question(()) == ""
    assert question(("orders", "payments")) == "orders"


def test_everybody_has_a_turn() -> None:
    assert ask(BrokerTurns(), None, 5) == [A, B, C, A, B]


def test_a_new_question_goes_to_another_broker_than_the_last_one_of_any() -> None:
    turns = BrokerTurns()
    assert ask(turns, None) + ask(turns, "orders") == [A, B]


def test_questions_that_alternate_meet_every_broker() -> None:
    turns = BrokerTurns()
    met = [(*ask(turns, "x"), *ask(turns, "y")) for _ in range(3)]
    assert {x for x, _ in met} == {y for _, y in met} == {A, B, C}


def test_who_was_asked_last_is_not_among_the_others_and_may_leave() -> None:
    turns = BrokerTurns()
    turns.note(None, B)
    assert turns.others(None, [B]) == []
    assert turns.others(None, [A, C]) == [C, A]
