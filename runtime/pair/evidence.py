"""What each cluster carries of its pair, held against what the witness says. Pure.

The witness decides which site is active. It can lose its memory: its disks are wiped, its tree is
deleted, or an old copy of it is restored. Each cluster therefore carries evidence in an internal
topic: the pair's id, the ids of its clusters, the active site with its epoch, and a promotion that
is under way. A witness that knows less than the evidence is contradicted, and nobody acts on it.

    witness   evidence          judgement
    none      none              first start, if both clusters have answered
    none      some              contradicted: the witness has lost its memory
    none      records are gone  contradicted: nobody can tell whether there was any
    epoch 3   epoch 2, or none  agreed; the cluster was away, its evidence is to be renewed
    epoch 3   epoch 4           contradicted: the witness is an old copy
    number 7  number 8          contradicted: the same, of before a promotion that was taken back

Anybody with the right to write to the topic can forge evidence, and it has to be readable without
a witness, so nothing tells a forged record from another. It can only stop, never move: whatever it
says, the witness decides or nobody acts, and `runtime.pair.recovery` restores without a person's
word only what the witness or every cluster says.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, field
from typing import Any, Final, TypeAlias
from uuid import UUID

from runtime.coordination.witness import ActiveSite, Pair
from runtime.set_option import set_option
from wire.values import frozen

TOPIC: Final = "pair-evidence.internal"
"""The internal topic of the evidence, on each cluster of the pair."""
FORMAT: Final = 1
MAX_EVIDENCE_BYTES: Final = 65_536
"""What is longer has not been written by us."""
LARGEST_NUMBER: Final = 2**52
"""No pair comes near it."""
LARGEST_EPOCH: Final = 10**9
"""No pair comes near it. The journals of later ones would not sort, nor the next one be written."""


class EvidenceGarbled(ValueError):
    """A record of the evidence topic says nothing that is understood; the message quotes it."""


@frozen
class Patterns:
    """The names of the topics that a flow moves, as regular expressions."""

    include: tuple[str, ...]
    exclude: tuple[str, ...]


@frozen
class Evidence:
    """What one cluster carries of one pair.

    `path` is the pair's path in its witness, and the record's key. `clusters` has the cluster ids
    by site. `moving_to` and `moving_epoch` name a promotion that was begun and has not been seen to
    end. `topics` has the patterns of each flow by its name. `number` grows with each change that a
    promotion writes; earlier versions have none.
    """

    path: str
    pair: str
    clusters: Mapping[str, str]
    active: str
    epoch: int
    moving_to: str | None = None
    moving_epoch: int | None = None
    number: int = 0
    topics: Mapping[str, Patterns] = field(default_factory=dict)

    def encode(self) -> tuple[bytes, bytes]:
        """Return the record's key and value."""
        return (
            key_of(self.path, self.clusters),
            json.dumps({"format": FORMAT, **asdict(self)}).encode(),
        )

    def is_of(self, path: str, sites: Collection[str]) -> bool:
        """Tell whether it speaks of the pair of these sites at this path of their witness."""
        return self.path == path and set(self.clusters) == set(sites)

    def describe(self) -> str:
        """Return which site it says is active, in words."""
        moving = ""
        if self.moving_to is not None:
            moving = f", a promotion of {self.moving_to} (epoch {self.moving_epoch}) under way"
        return f"active {self.active}, epoch {self.epoch}{moving}"

    @property
    def age(self) -> tuple[int, int]:
        """Return what is greater of what was written later."""
        return self.epoch, self.number


def key_of(path: str, sites: Collection[str]) -> bytes:
    """Return the key of a pair's record.

    A cluster may belong to several pairs, each with a witness of its own and the default path.
    """
    return " ".join([path, *sorted(sites)]).encode(errors="surrogatepass")


def decode_evidence(key: bytes, value: bytes) -> Evidence:
    """Return the evidence in a record; raises EvidenceGarbled."""
    try:
        found = _read(value)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise EvidenceGarbled(f"{value[:80]!r}: {error}") from error
    if key_of(found.path, found.clusters) != key:
        raise EvidenceGarbled(f"{value[:80]!r}: the record's key is {key[:80]!r}")
    return found


def _read(value: bytes) -> Evidence:
    if len(value) > MAX_EVIDENCE_BYTES:
        raise ValueError(f"{len(value)} bytes")
    document: Any = json.loads(value)
    if document["format"] != FORMAT:
        raise ValueError(f"format {document['format']!r}")
    begun = document["moving_epoch"]
    moving_to = document["moving_to"]
    return Evidence(
        path=_text(document["path"]),
        pair=_text(document["pair"]),
        clusters={_text(name): _text(its_id) for name, its_id in document["clusters"].items()},
        active=_text(document["active"]),
        epoch=_count(document["epoch"]),
        moving_to=None if moving_to is None else _text(moving_to),
        moving_epoch=None if begun is None else _count(begun),
        number=_count(document.get("number", 0), LARGEST_NUMBER + 1),
        topics={
            _text(name): Patterns(
                include=tuple(map(_text, each["include"])),
                exclude=tuple(map(_text, each["exclude"])),
            )
            for name, each in document["topics"].items()
        },
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    value.encode()  # JSON has halves of characters, which UTF-8 has not
    return value


def _count(value: object, limit: int = LARGEST_EPOCH) -> int:
    if type(value) is not int or not 0 <= value < limit:
        raise TypeError(f"{value!r:.80} is no epoch or number")
    return value


@frozen
class SiteSeen:
    """One cluster as it was seen. `fault` says why it did not answer, or not in full.

    `topic_ids` are those of its topics, none where its brokers know no such ids (KIP-516).
    `evidence` is that of this pair, None where the cluster carries none. `rivals` is evidence of
    pairs at other paths that move some topic that this pair moves too, by the topic's name.
    """

    cluster_id: str | None = None
    topic_ids: frozenset[UUID] = frozenset()
    evidence: Evidence | None = None
    rivals: Mapping[str, Evidence] = field(default_factory=dict)
    fault: str | None = None
    has_lost_evidence: bool = False
    """Whether its topic of evidence has lost records, and holds none of this pair."""
    missing_replicas: int = 0
    """How many replicas more its evidence could have by now: the topic was made when brokers were
    away, or there were fewer."""


@frozen
class PairSeen:
    """The witness and both clusters as they were seen.

    `active` and `pair` are what the witness holds, None where it holds none; `journals` are the
    epochs of the promotions that it knows of, and `number` is that of the newest evidence.
    """

    path: str
    initial_active: str
    active: ActiveSite | None
    pair: Pair | None
    journals: Collection[int]
    sites: Mapping[str, SiteSeen]
    number: int = 0
    topic_set: str | None = None
    """Whose these are, in a file with sets."""
    set_faults: Sequence[str] = ()
    """How the witness has other sets of topics than the file."""

    @property
    def known_active(self) -> ActiveSite:
        """Return the active site of a pair that has begun."""
        assert self.active is not None, "asked of a pair that is agreed only"
        return self.active


@frozen(kw_only=False)
class Agreed:
    """Nothing contradicts the witness. `stale` are the sites whose evidence is to be renewed."""

    stale: tuple[str, ...] = ()


@frozen(kw_only=False)
class FirstStart:
    """Neither the witness nor any cluster knows of this pair."""


@frozen(kw_only=False)
class EvidenceUnknown:
    """There is no witness, and some cluster does not tell whether there was one."""

    reason: str


@frozen(kw_only=False)
class Contradicted:
    """What was seen cannot all be true; nobody may act on it. The reason names what disagrees."""

    reason: str


Judgement: TypeAlias = Agreed | FirstStart | EvidenceUnknown | Contradicted


def _recover(seen: PairSeen) -> str:
    """Return the command that leads on."""
    return (
        f"`failover recover{set_option(seen.topic_set)}` shows what both clusters say and restores"
        " the witness"
    )


def judge(seen: PairSeen) -> Judgement:
    """Hold the witness against what the clusters carry."""
    contradiction = _identity(seen) or next(iter(seen.set_faults), None)
    if contradiction is not None:
        return Contradicted(contradiction)
    if seen.active is None:
        return _without_witness(seen)
    for name, site in sorted(seen.sites.items()):
        if site.evidence is not None:
            contradiction = _older_than(seen, seen.active, name, site.evidence)
            if contradiction is not None:
                return Contradicted(contradiction)
    return Agreed(stale=tuple(_stale(seen, seen.active)))


def _identity(seen: PairSeen) -> str | None:
    """Return which cluster is not the one that it is said to be."""
    ids = {name: site.cluster_id for name, site in seen.sites.items() if site.cluster_id}
    owners: dict[str, str] = {}
    for name, cluster_id in sorted(ids.items()):
        other = owners.setdefault(cluster_id, name)
        if other != name and _is_one_cluster(seen.sites[other], seen.sites[name]):
            return (
                f"{other} and {name} are one cluster (id {cluster_id}) under two addresses;"
                f" correct clusters.{other}.bootstrap or clusters.{name}.bootstrap"
                f"{_EMPTY if not seen.sites[name].topic_ids else ''}"
            )
    for known, teller in _known_ids(seen):
        for name, cluster_id in sorted(ids.items()):
            expected = known.get(name)
            if not expected or expected == cluster_id:
                continue  # a cluster that was away when the pair was restored has no id there
            swapped = next((other for other, its in known.items() if its == cluster_id), None)
            if swapped is not None:
                return (
                    f"the address of {name} leads to {swapped} (cluster id {cluster_id});"
                    " correct the `bootstrap` addresses in `clusters`"
                )
            return (
                f"{name} is another cluster than before: its id is {cluster_id}, {teller} has"
                f" {expected}; correct clusters.{name}.bootstrap, or, if {name} was set up anew,"
                f" run `failover recover --replaced {name}{set_option(seen.topic_set)}`"
            )
    return None


_EMPTY: Final = (
    "; if they are two empty clusters whose disks were formatted with one id, create a topic"
)


def _is_one_cluster(one: SiteSeen, other: SiteSeen) -> bool:
    """Tell whether two addresses with one cluster id lead to the same cluster.

    People format the disks of two KRaft clusters with one id, as examples show it. Topic ids are
    made by the cluster itself: two clusters have none in common.
    """
    if not one.topic_ids and not other.topic_ids:
        return True
    return bool(one.topic_ids & other.topic_ids)


def _known_ids(seen: PairSeen) -> list[tuple[Mapping[str, str], str]]:
    if seen.pair is not None:
        return [(seen.pair.clusters, "the witness")]
    return [
        (site.evidence.clusters, f"the evidence on {name}")
        for name, site in sorted(seen.sites.items())
        if site.evidence is not None
    ]


def _without_witness(seen: PairSeen) -> Judgement:
    told = {name: one.evidence for name, one in sorted(seen.sites.items()) if one.evidence}
    if told:
        said = "; ".join(f"{name} says {each.describe()}" for name, each in told.items())
        return Contradicted(
            f"the witness holds nothing at {seen.path}, but this pair has run before: {said}."
            f" {_recover(seen)}"
        )
    if seen.pair is not None:
        return Contradicted(
            f"the witness knows the pair at {seen.path}, but not which site is active."
            f" {_recover(seen)}"
        )
    faults = [f"{name}: {one.fault}" for name, one in sorted(seen.sites.items()) if one.fault]
    if faults:
        return EvidenceUnknown(
            f"the witness holds nothing at {seen.path}, and whether this pair has run before is"
            f" not known: {'; '.join(faults)}"
        )
    lost = [name for name, one in sorted(seen.sites.items()) if one.has_lost_evidence]
    if lost:
        return Contradicted(
            f"the witness holds nothing at {seen.path}, and {TOPIC} on {' and '.join(lost)} has"
            " lost records, so nobody can tell whether this pair has run before: find out which"
            " site takes writes, close the other, and run"
            f" `failover recover --active SITE --write{set_option(seen.topic_set)}`"
        )
    for name, site in sorted(seen.sites.items()):
        for topic, rival in sorted(site.rivals.items()):
            if not _has_our_active_site(rival, seen) or rival.moving_to is not None:
                return Contradicted(
                    f"{name} carries evidence of the pair of {' and '.join(sorted(rival.clusters))}"
                    f" at {rival.path} ({rival.describe()}), which moves {topic} too; correct"
                    f" coordination.path, or take {topic} out of one of the two files"
                )
    return FirstStart()


def _has_our_active_site(rival: Evidence, seen: PairSeen) -> bool:
    """Tell whether the active site of another pair is the one that this pair would begin with.

    Another file may have the names of the sites the other way round, or others. Where ids are not
    known, or both clusters were formatted with one, the names have to tell.
    """
    ours = seen.sites.get(seen.initial_active)
    ids = list(rival.clusters.values())
    if ours is None or not ours.cluster_id or not all(ids) or len(set(ids)) < len(ids):
        return rival.active == seen.initial_active
    return rival.clusters.get(rival.active) == ours.cluster_id


def _older_than(seen: PairSeen, active: ActiveSite, name: str, evidence: Evidence) -> str | None:
    """Return how the witness is older than a cluster's evidence, if it is."""
    says = f"the witness says active {active.site}, epoch {active.epoch}"
    if seen.pair is not None and evidence.pair != seen.pair.pair:
        return (
            f"{name} carries evidence of another pair ({evidence.pair}: {evidence.describe()}) than"
            f" the witness ({seen.pair.pair}). {_recover(seen)}"
        )
    if evidence.epoch > active.epoch:
        return f"{says}, but {name} says {evidence.describe()}. {_recover(seen)}"
    if evidence.epoch == active.epoch and evidence.active != active.site:
        return f"{says}, but {name} says {evidence.describe()} in the same epoch. {_recover(seen)}"
    begun = evidence.moving_epoch
    if begun is not None and begun > active.epoch and begun not in seen.journals:
        return (
            f"{says}, but {name} says {evidence.describe()}, of which it knows nothing."
            f" {_recover(seen)}"
        )
    if evidence.number > seen.number:
        return (
            f"{says}, but it is an old copy: {name} carries evidence number {evidence.number}, and"
            f" the witness has come to {seen.number}. {_recover(seen)}"
        )
    return None


def _stale(seen: PairSeen, active: ActiveSite) -> list[str]:
    """Return the sites whose evidence does not say what the witness says."""
    found = []
    for name, site in sorted(seen.sites.items()):
        if site.fault is not None:
            continue
        evidence = site.evidence
        if (
            evidence is None
            or seen.pair is None
            or (evidence.active, evidence.epoch) != (active.site, active.epoch)
            or evidence.number != seen.number
            or evidence.clusters != seen.pair.clusters
            or evidence.moving_to is not None
        ):
            found.append(name)
    return found
