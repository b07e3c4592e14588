"""Ten questions of somebody on call, answered in the console from its first page, each timed.

A question has to be answered by three clicks or fields at most, within ten seconds. The times are
kept in `build/on-call.json`; they are those of a browser, to which a person adds the reading.
"""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pytest
from playwright.sync_api import Browser, Page

from tests.docs.pages import ROOT
from tests.interop.browsers import Served, in_browser, opened

TIMES: Final = ROOT / "build" / "on-call.json"
MOST_ACTIONS: Final = 3
MOST_S: Final = 10.0

pytestmark = pytest.mark.matrix(subject="The console", against="ten questions of who is on call")


@dataclass(slots=True)
class OnCall:
    """Somebody at the first page, and how much they do to find an answer."""

    page: Page
    actions: int = field(default=0)

    def go(self, name: str) -> None:
        """Follow a link by its words."""
        self.actions += 1
        self.page.get_by_role("link", name=name, exact=True).first.click()

    def fill(self, label: str, text: str) -> None:
        """Fill a field in, and send its form by the keyboard."""
        self.actions += 1
        self.page.get_by_label(label, exact=True).fill(text)
        self.page.keyboard.press("Enter")

    def read(self, pattern: str) -> str:
        """Return the first line of the page that says so; waits while the page comes."""
        found = self.page.locator("main").get_by_text(re.compile(pattern)).first
        found.wait_for(timeout=MOST_S * 1_000)
        return found.inner_text()


def which_site_is_active(me: OnCall) -> None:
    assert "dc1" in me.read("^dc1 is active$")


def could_i_fail_over_now_and_how(me: OnCall) -> None:
    me.read("^Yes, to dc2$")
    me.read("^failover promote dc2 ")


def what_would_be_lost_now(me: OnCall) -> None:
    me.read("^If the active site were lost now: at least 12 records")


def which_partition_stands_still_and_what_helps(me: OnCall) -> None:
    me.go("Partitions")
    me.read("retention overrun")
    me.read("mirror resume")


def how_much_a_group_has_not_read(me: OnCall) -> None:
    me.go("Groups")
    me.fill("Group or flow", "group-777")
    me.read("^11 of 10,000 groups")


def how_the_last_rehearsal_went(me: OnCall) -> None:
    me.go("Last rehearsal")
    me.go("12")
    me.read("^Phases to dc2$")


def whether_the_last_audit_was_clean(me: OnCall) -> None:
    me.go("Last audit")
    me.read("^clean$")


def which_replicas_are_not_in_sync(me: OnCall) -> None:
    me.go("Sites")
    me.read("6 partitions not all in sync")


def which_records_one_site_alone_has(me: OnCall) -> None:
    me.go("Divergence")
    me.read("2 records are on one site alone")


def where_a_record_lies_on_the_other_site(me: OnCall) -> None:
    me.go("Records")
    me.fill("Topic", "orders")
    me.read("^dc2, offset 1,039$")


QUESTIONS: Final[tuple[Callable[[OnCall], None], ...]] = (
    which_site_is_active,
    could_i_fail_over_now_and_how,
    what_would_be_lost_now,
    which_partition_stands_still_and_what_helps,
    how_much_a_group_has_not_read,
    how_the_last_rehearsal_went,
    whether_the_last_audit_was_clean,
    which_replicas_are_not_in_sync,
    which_records_one_site_alone_has,
    where_a_record_lies_on_the_other_site,
)


async def test_each_of_ten_questions_has_its_answer_within_three_actions() -> None:
    def answer(browser: Browser, console: Served) -> dict[str, tuple[int, float]]:
        took: dict[str, tuple[int, float]] = {}
        for question in QUESTIONS:
            began = time.monotonic()
            me = OnCall(opened(browser, console.address))
            question(me)
            took[question.__name__] = (me.actions, round(time.monotonic() - began, 2))
            me.page.context.close()
        return took

    took = await in_browser(answer)
    TIMES.write_text(json.dumps(took, indent=1))
    assert all(actions <= MOST_ACTIONS for actions, _ in took.values()), took
    assert all(seconds < MOST_S for _, seconds in took.values()), took
