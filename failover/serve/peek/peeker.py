"""Who may peek, how many at once, and the line of the log that says who has."""

import logging
from typing import Final

from failover.serve.peek.answer import PeekAnswer, answer_question
from failover.serve.peek.peek_page import AskedPeek, peek_page
from failover.serve.peek.question import BadQuestion, PeekQuestion, question_of
from runtime.configuration.config import Configuration
from runtime.console.frame import PageParts
from runtime.pages.browsing import PageRequest
from runtime.process.output import escaped

_LOG = logging.getLogger(__name__)

AT_ONCE: Final = 2
"""So many look at once; each may hold tens of megabytes."""


class Peeker:
    """Answers the page of records of one `failover serve`."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._looking = 0

    async def page(self, request: PageRequest) -> PageParts:
        """Return the page for what is asked, with records or with what is in the way."""
        topics = self._configuration.console.peek
        sites = tuple(self._configuration.clusters)
        asked = AskedPeek(
            sites=sites, fields=request.query, is_on=topics.is_any, file=self._configuration.file
        )
        try:
            question = question_of(request.query, sites)
        except BadQuestion as bad:
            return peek_page(asked, str(bad))
        if question is None or not topics.is_any:
            return peek_page(asked, None)
        refusal = self._refusal(question)
        _LOG.info("peek: %s asks for %s", escaped(request.asker), question)
        if refusal is not None:
            _LOG.info("peek: %s was refused: %s", escaped(request.asker), refusal)
            return peek_page(asked, refusal)
        self._looking += 1
        try:
            answer = await answer_question(self._configuration, question)
        finally:
            self._looking -= 1
        _LOG.info("peek: %s was shown %s", escaped(request.asker), _shown(answer))
        return peek_page(asked, answer)

    def _refusal(self, question: PeekQuestion) -> str | None:
        """Return why a question is not answered; None if it is."""
        topic = question.place.topic
        if not self._configuration.console.peek.matches(topic):
            return f"console.peek does not name {topic}, so its records are not shown"
        if not _LOG.isEnabledFor(logging.INFO):
            return (
                "the log of this program leaves out who peeks: set"
                f" log.levels.{__name__} to info, and start it again"
            )
        if self._looking >= AT_ONCE:
            return f"{AT_ONCE} others are being answered: ask again in some seconds"
        return None


def _shown(answer: PeekAnswer) -> str:
    """Return what somebody has got to see, for the log."""
    if answer.fault is not None or answer.look is None:
        return f"no record of {answer.question}: {escaped(answer.fault or 'there is none')}"
    offsets = [one.offset for one in answer.look.records]
    which = f", offsets {offsets[0]} to {offsets[-1]}" if offsets else ""
    return f"{len(offsets)} records of {answer.question}{which}"
