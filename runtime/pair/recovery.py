"""What a witness that has lost its memory is restored to, decided from both clusters' evidence.

Pure. Nobody is asked to believe one cluster alone: where one does not answer, where they disagree,
or where a promotion was under way, a person names the active site.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from runtime.pair.evidence import (
    Agreed,
    Contradicted,
    Evidence,
    FirstStart,
    PairSeen,
    judge,
)
from runtime.witness import ActiveSite, Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Write this to the witness, and then as evidence to every cluster that answers."""

    pair: Pair
    active: ActiveSite


@dataclass(frozen=True, slots=True)
class NothingToRestore:
    """The witness and the clusters agree, or none of them knows anything."""

    reason: str


@dataclass(frozen=True, slots=True)
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
    return _restore(seen, active)


def _restore(seen: PairSeen, active: str | None) -> Restore | CannotRestore:
    told = {name: one.evidence for name, one in sorted(seen.sites.items()) if one.evidence}
    if seen.active is None and not told:
        return CannotRestore("no cluster that answers carries evidence of this pair")
    chosen = _active(seen, told, active)
    if isinstance(chosen, str):
        return CannotRestore(chosen)
    return Restore(pair=_pair(seen, told), active=chosen)


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


def _active(seen: PairSeen, told: Mapping[str, Evidence], chosen: str | None) -> ActiveSite | str:
    """Return the active site, or why a person has to name it."""
    epochs = [one.epoch for one in told.values()]
    epochs += [one.moving_epoch for one in told.values() if one.moving_epoch is not None]
    epochs += [*seen.journals, *([] if seen.active is None else [seen.active.epoch])]
    latest = max(epochs)
    if chosen is not None:
        return ActiveSite(site=chosen, epoch=latest + 1)
    decide = "; decide which site is active, close the other, and name it with --active SITE"
    silent = [f"{name} ({one.fault})" for name, one in sorted(seen.sites.items()) if one.fault]
    if silent:
        return f"{', '.join(silent)} does not tell what it carries{decide}"
    moving = next((one for one in told.values() if one.moving_to is not None), None)
    if moving is not None:
        return (
            f"a promotion of {moving.moving_to} (epoch {moving.moving_epoch}) was under way when"
            f" the witness lost its memory{decide}"
        )
    said = [(one.epoch, one.active) for one in told.values()]
    if seen.active is not None:
        said.append((seen.active.epoch, seen.active.site))
    newest = max(epoch for epoch, _ in said)
    sites = {site for epoch, site in said if epoch == newest}
    if len(sites) > 1:
        return f"epoch {newest} has two active sites, {' and '.join(sorted(sites))}{decide}"
    if len({one.pair for one in told.values()}) > 1 or not sites <= {*seen.sites}:
        return f"the clusters carry evidence of different pairs, or of another than this{decide}"
    return ActiveSite(site=sites.pop(), epoch=newest)


def _pair(seen: PairSeen, told: Mapping[str, Evidence]) -> Pair:
    """Return the pair with the ids that the clusters have now, where they answer."""
    newest = max(told.values(), key=lambda one: one.epoch, default=None)
    if newest is not None:
        pair, clusters = newest.pair, dict(newest.clusters)
    else:
        assert seen.pair is not None or seen.active is not None, "something knows of the pair"
        pair = "" if seen.pair is None else seen.pair.pair
        clusters = {} if seen.pair is None else dict(seen.pair.clusters)
    clusters |= {name: one.cluster_id for name, one in seen.sites.items() if one.cluster_id}
    return Pair(pair=pair, clusters={name: clusters.get(name, "") for name in sorted(seen.sites)})
