"""What keeps a rehearsal from beginning, as one list of reasons. Pure."""

from collections.abc import Iterator, Mapping

from failover.automatic.hold import Hold
from failover.journal.journal import Journal
from runtime.configuration.topic_sets import REHEARSAL_SET
from runtime.set_option import set_option
from wire.values import frozen


class CannotRehearse(Exception):
    """This file and this site allow no rehearsal; the message says what to do."""


@frozen
class RehearsalView:
    """Everything that the beginning of a rehearsal depends on."""

    site: str
    """The one to be promoted."""
    home: str
    """The other one, from where the set is promoted and where it goes back to."""
    active: Mapping[str, str]
    """The active site of each set, that of rehearsals too."""
    unfinished: Mapping[str, Journal]
    """The unfinished promotion of each set that has one."""
    silent: Mapping[str, str]
    """The sites that do not answer, and why."""
    unmirrored: tuple[str, ...]
    """The flows of the set, of those that have to run now, that nobody runs."""
    hold: Hold | None = None


def find_obstacles(view: RehearsalView) -> Iterator[str]:
    """Yield what is in the way, each with what to do about it."""
    if view.hold is not None:
        yield f"promotions are {view.hold}: `failover release` lets them begin"
    for site, why in sorted(view.silent.items()):
        yield f"{site} does not answer: {why}"
    for name, journal in sorted(view.unfinished.items()):
        if name != REHEARSAL_SET:
            yield (
                f"the {journal.kind} promotion of {journal.site} (set {name}, epoch"
                f" {journal.epoch}) is unfinished:"
                f" `failover promote {journal.site}{set_option(name)}` goes on with it"
            )
    of_applications = {site for name, site in view.active.items() if name != REHEARSAL_SET}
    if of_applications == {view.site}:
        yield (
            f"{view.site} is the active site of every set of applications: `failover rehearse"
            f" {view.home}` rehearses what would come next"
        )
    for flow in view.unmirrored:
        yield f"nobody runs the flow {flow}: start `mirror run`"
