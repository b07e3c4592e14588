"""A broker's side of fetch sessions."""

from mirror.forward.fetch_session import PartitionKey, Question
from wire.hot.fetch import Wanted


class Broker:
    """The broker's side: sessions by number, each with the epoch it expects next."""

    def __init__(self) -> None:
        self.sessions: dict[int, tuple[int, dict[PartitionKey, Wanted]]] = {}
        self.made = 0

    def hear(
        self, question: Question, *, opens: bool
    ) -> tuple[int, dict[PartitionKey, Wanted]] | None:
        """Return the session's number and what it holds then; None for an unknown one."""
        session_id, epoch = question.session
        named = {(key, one.partition): one for key, ones in question.wanted.items() for one in ones}
        if epoch == 0:
            self.sessions.pop(session_id, None)
            assert not question.forgotten
            if not opens:
                return 0, named
            self.made += 1
            self.sessions[self.made] = (1, named)
            return self.made, named
        expected, held = self.sessions.get(session_id, (0, {}))
        if expected != epoch:
            return None
        for key, indexes in question.forgotten.items():
            for index in indexes:
                del held[key, index]
        held |= named
        self.sessions[session_id] = (epoch + 1, held)
        return session_id, held
