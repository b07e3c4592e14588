"""What applications would be refused after a switch: both sites are asked, nothing is changed."""

from collections.abc import Iterator, Mapping
from typing import Final

from runtime.rights.closing import without_fence
from runtime.rights.own import withheld_words
from runtime.rights.refused import NOBODY, RefusedPrincipal, Seen, refused_after_switch
from runtime.set_option import set_option
from wire.net.cluster import Cluster
from wire.net.errors import RequestRefused, UnsupportedApi
from wire.net.rights import Right, RightsOff, all_rights
from wire.net.scram_users import scram_users
from wire.values import frozen

MOST_LINES: Final = 20
"""More lines of one kind are counted."""
NOT_SEEN: Final = "super users are not known, and a cluster may let all do what no entry speaks of"


@frozen
class SiteRights:
    """What one site keeps of its applications. A string says why it is not known."""

    site: str
    entries: frozenset[Right] | str
    users: frozenset[tuple[str, str]] | str
    """SCRAM users, each with each mechanism."""
    is_open: bool = False
    """The site has no authorizer, so nobody is refused there."""


@frozen
class Outlook:
    """What is known about who would be refused on the target."""

    source: str
    target: str
    refused: tuple[RefusedPrincipal, ...] = ()
    missing_users: tuple[tuple[str, str], ...] | None = None
    """SCRAM users, each with a mechanism, who cannot log in on the target; None is not known."""
    unknown: tuple[str, ...] = ()
    """What could not be compared, and why."""
    withheld: tuple[Right, ...] = ()
    """Entries of the source that deny something and that the target does not get."""

    def lines(self) -> Iterator[str]:
        """Yield it for people."""
        told = [one.words(self.target) for one in self.refused]
        yield from _some(told)
        if told:
            yield f"of rights on {self.target}: {NOT_SEEN}"
        if self.missing_users:
            names = [f"{user} ({mechanism})" for user, mechanism in self.missing_users]
            yield (
                f"SCRAM users of {self.source} that {self.target} does not know, and whose keys no"
                f" broker gives away: {', '.join(_some(names))}; create them there with"
                " `kafka-configs.sh`"
            )
        yield from self.withheld_lines
        yield from self.unknown

    @property
    def withheld_lines(self) -> list[str]:
        """Return a line for each rule that the target does not get; very many are counted."""
        return _some([withheld_words(right, self.target) for right in self.withheld])

    @property
    def principals(self) -> Mapping[str, int]:
        """Return how many resources each principal would be refused; NOBODY is the empty name."""
        found: dict[str, int] = {}
        for one in self.refused:
            found[one.principal] = found.get(one.principal, 0) + len(one.names)
        return found

    def summary(self, topic_set: str | None) -> str | None:
        """Return one line, None where nobody would be refused as far as is known."""
        people = len(self.principals.keys() - {NOBODY})
        unusable = sum(len(one.names) for one in self.refused if one.principal == NOBODY)
        parts = [
            f"{people} principals would be refused on {self.target}" if people else "",
            f"{unusable} topics and groups may be used by nobody there" if unusable else "",
            f"{len(self.missing_users)} SCRAM users are not there" if self.missing_users else "",
            f"{len(self.withheld)} rules that deny something are withheld" if self.withheld else "",
        ]
        told = "; ".join(filter(None, parts))
        return f"{told}: `mirror check{set_option(topic_set)}` names them" if told else None

    @property
    def document(self) -> Mapping[str, object]:
        """Return it for JSON."""
        return {
            "refused": [one.document for one in self.refused],
            "missing_scram_users": None
            if self.missing_users is None
            else [list(one) for one in self.missing_users],
            "withheld": [withheld_words(right, self.target) for right in self.withheld],
            "unknown": list(self.unknown),
        }


async def ask_site(cluster: Cluster, site: str) -> SiteRights:
    """Return what a site keeps; raises NetworkFault where it does not answer."""
    is_open = False
    try:
        entries: frozenset[Right] | str = frozenset(await all_rights(cluster))
    except RightsOff as off:
        entries, is_open = f"{site} has {off}", True
    except RequestRefused as refused:
        entries = f"{site}: {refused}"
    users = await _users(cluster, site)
    return SiteRights(site=site, entries=entries, users=users, is_open=is_open)


def silent_site(site: str, fault: str) -> SiteRights:
    """Return what is known of a site that does not answer: nothing."""
    return SiteRights(site=site, entries=f"{site}: {fault}", users=f"{site}: {fault}")


async def _users(cluster: Cluster, site: str) -> frozenset[tuple[str, str]] | str:
    try:
        return frozenset(await scram_users(cluster))
    except UnsupportedApi:
        return f"{site} does not tell its SCRAM users"
    except RequestRefused as refused:
        return f"{site}: {refused}"


def look_ahead(source: SiteRights, target: SiteRights, seen: Seen) -> Outlook:
    """Return what would be refused on the target. Pure."""
    unknown: list[str] = []
    missing: tuple[tuple[str, str], ...] | None = None
    if isinstance(source.users, str) or isinstance(target.users, str):
        unknown += _reasons("which SCRAM users are missing", source.users, target.users)
    else:
        missing = tuple(sorted(source.users - target.users))
    if target.is_open:
        return Outlook(
            source=source.site, target=target.site, missing_users=missing, unknown=tuple(unknown)
        )
    if isinstance(target.entries, str):
        why = _reasons("who would be refused after a switch", target.entries)
        return Outlook(
            source=source.site, target=target.site, missing_users=missing, unknown=(*why, *unknown)
        )
    held = None if isinstance(source.entries, str) else source.entries
    if held is None:
        unknown += _reasons("who may do what at present", source.entries)
    compared = refused_after_switch(
        None if held is None else without_fence(held), without_fence(target.entries), seen
    )
    if compared.is_cut:
        unknown.append("more rights than can be compared: who else would be refused is not known")
    return Outlook(
        source=source.site,
        target=target.site,
        refused=compared.refused,
        missing_users=missing,
        unknown=tuple(unknown),
    )


def _reasons(what: str, *answers: object) -> list[str]:
    why = [answer for answer in answers if isinstance(answer, str)]
    return [f"{what} is not known: {'; '.join(why)}"]


def _some(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_LINES
    return [*lines[:MOST_LINES], *([f"and {more} more"] if more > 0 else [])]
