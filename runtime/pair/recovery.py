"""What a witness that has lost its memory is restored to, decided from both clusters' evidence.

Pure. Nobody is asked to believe one cluster alone, as anybody may have written what it carries.
Where one does not answer, where they disagree, or where a promotion was under way, a person names
the active site.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from runtime.coordination.witness import ActiveSite, Pair
from runtime.pair.evidence import (
    LARGEST_EPOCH,
    TOPIC,
    Agreed,
    Contradicted,
    Evidence,
    FirstStart,
    PairSeen,
    judge,
)
from wire.values import frozen


@frozen
class Restore:
    """Write this to the witness, and then as evidence to every cluster that answers.

    `number` is the highest that any of them has; the evidence gets a higher one.
    """

    pair: Pair
    active: ActiveSite
    number: int


@frozen(kw_only=False)
class NothingToRestore:
    """The witness and the clusters agree, or none of them knows anything."""

    reason: str


@frozen(kw_only=False)
class CannotRestore:
    """A person has to decide or to set something right first; the reason says what."""

    reason: str


Recovery: TypeAlias = Restore | NothingToRestore | CannotRestore


def decide_recovery(
    seen: PairSeen, *, active: str | None = None, replaced: Collection[str] = ()
) -> Recovery:
    """Return what the witness is to say. `active` and `replaced` are what a person has decided.

    A cluster in `replaced` was set up anew under its old name: its new id is taken over, and what
    another cluster of that name once said does not count.
    """
    unknown = sorted({*replaced, *([] if active is None else [active])} - set(seen.sites))
    if unknown:
        known = ", ".join(sorted(seen.sites))
        return CannotRestore(f"unknown site {unknown[0]} (the file has {known})")
    judgement = judge(_with_ids_taken_over(seen, replaced))
    if isinstance(judgement, FirstStart):
        return NothingToRestore("neither the witness nor any cluster knows of this pair yet")
    if isinstance(judgement, Agreed) and not replaced and active is None:
        return NothingToRestore("nothing contradicts the witness")
    if isinstance(judgement, Contradicted) and _is_about_addresses(seen, replaced):
        return CannotRestore(judgement.reason)
    return _restore(seen, active, replaced)


def _restore(
    seen: PairSeen, active: str | None, replaced: Collection[str]
) -> Restore | CannotRestore:
    told = {name: one.evidence for name, one in sorted(seen.sites.items()) if one.evidence}
    lost = [name for name, one in sorted(seen.sites.items()) if one.has_lost_evidence]
    if seen.active is None and not told and lost and not active:
        return CannotRestore(f"{TOPIC} on {' and '.join(lost)} has lost its records{DECIDE}")
    if seen.active is None and not told and not lost:
        return CannotRestore("no cluster that answers carries evidence of this pair")
    chosen = _named(seen, told, active) if active else _agreed(seen, told, replaced)
    if isinstance(chosen, str):
        return CannotRestore(chosen)
    number = max([seen.number, *(one.number for one in told.values())])
    return Restore(pair=_pair(seen, told), active=chosen, number=number)


def _with_ids_taken_over(seen: PairSeen, replaced: Collection[str]) -> PairSeen:
    """Return the same with the ids of replaced clusters as the known ones."""
    now = {name: seen.sites[name].cluster_id or "" for name in replaced}
    if not now:
        return seen
    pair = None if seen.pair is None else replace(seen.pair, clusters={**seen.pair.clusters, **now})
    sites = {
        name: site
        if site.evidence is None
        else replace(
            site, evidence=replace(site.evidence, clusters={**site.evidence.clusters, **now})
        )
        for name, site in seen.sites.items()
    }
    return replace(seen, pair=pair, sites=sites)


def _is_about_addresses(seen: PairSeen, replaced: Collection[str]) -> bool:
    """Tell whether some address does not lead to the cluster that it is said to."""
    without = {name: replace(site, evidence=None, rivals={}) for name, site in seen.sites.items()}
    known = [one.evidence.clusters for one in seen.sites.values() if one.evidence is not None]
    clusters = seen.pair.clusters if seen.pair is not None else (known[0] if known else {})
    pair = Pair(pair="", clusters=clusters)
    bare = replace(seen, active=ActiveSite(site="", epoch=0), pair=pair, sites=without)
    return isinstance(judge(_with_ids_taken_over(bare, replaced)), Contradicted)


def _named(seen: PairSeen, told: Mapping[str, Evidence], chosen: str) -> ActiveSite | str:
    """Return the site that a person has named, in an epoch later than all that are known.

    Or why there is no later one: evidence that was written by hand may name the last.
    """
    epochs = [one.epoch for one in told.values()]
    epochs += [one.moving_epoch for one in told.values() if one.moving_epoch is not None]
    epochs += [*seen.journals, *([] if seen.active is None else [seen.active.epoch])]
    later = max(epochs, default=0) + 1
    if later >= LARGEST_EPOCH:
        return (
            f"epoch {later - 1} is the last there is, and no promotion of ours has got so far:"
            f" somebody else has written it; delete the topic {TOPIC} of the cluster that names it"
        )
    return ActiveSite(site=chosen, epoch=later)


DECIDE: Final = "; decide which site is active, close the other, and name it with --active SITE"


def _agreed(
    seen: PairSeen, told: Mapping[str, Evidence], replaced: Collection[str]
) -> ActiveSite | str:
    """Return the active site by the latest epoch, or why a person has to name it.

    What is later than the witness has to be carried by every cluster that has not been set up anew:
    one alone may have been written to by anybody.
    """
    silent = [f"{name} ({one.fault})" for name, one in sorted(seen.sites.items()) if one.fault]
    if silent:
        return f"{', '.join(silent)} does not tell what it carries{DECIDE}"
    moving = next((one for one in told.values() if one.moving_to is not None), None)
    if moving is not None:
        return (
            f"a promotion of {moving.moving_to} (epoch {moving.moving_epoch}) was under way when"
            f" the witness lost its memory{DECIDE}"
        )
    said = {(one.epoch, one.active) for one in told.values()}
    if seen.active is not None:
        said.add((seen.active.epoch, seen.active.site))
    newest = max(epoch for epoch, _ in said)
    sites = {site for epoch, site in said if epoch == newest}
    if len(sites) > 1:
        return f"epoch {newest} has two active sites, {' and '.join(sorted(sites))}{DECIDE}"
    if len({one.pair for one in told.values()}) > 1 or not sites <= {*seen.sites}:
        return f"the clusters carry evidence of different pairs, or of another than this{DECIDE}"
    active = ActiveSite(site=sites.pop(), epoch=newest)
    if seen.active is None or seen.active.epoch < newest:
        older = [
            f"{name} {_carries(told.get(name))}"
            for name in sorted(set(seen.sites) - set(replaced))
            if name not in told or told[name].epoch < newest
        ]
        if older:
            return (
                f"not every cluster says that {active.site} is active in epoch {newest}:"
                f" {', '.join(older)}{DECIDE}"
            )
    return active


def _carries(evidence: Evidence | None) -> str:
    return "carries no evidence" if evidence is None else f"says {evidence.describe()}"


def _pair(seen: PairSeen, told: Mapping[str, Evidence]) -> Pair:
    """Return the pair with the ids that the clusters have now, where they answer.

    Its own id is empty where nobody knows it any more.
    """
    newest = max(told.values(), key=lambda one: one.epoch, default=None)
    if newest is not None:
        pair, clusters = newest.pair, dict(newest.clusters)
    else:
        pair = "" if seen.pair is None else seen.pair.pair
        clusters = {} if seen.pair is None else dict(seen.pair.clusters)
    clusters |= {name: one.cluster_id for name, one in seen.sites.items() if one.cluster_id}
    return Pair(pair=pair, clusters={name: clusters.get(name, "") for name in sorted(seen.sites)})
