"""A MirrorMaker 2 properties file, said in our configuration's words. Pure.

MirrorMaker looks up `source->target.key`, then `key` for a flow, and `alias.key`, then `key` for a
cluster (MirrorMakerConfig). Where defaults differ, MirrorMaker's are written out.
"""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

from mirror.mirrormaker.mm2_client import client_words, of_one_client, tls_words
from runtime.configuration.properties import Property
from runtime.configuration.reading.mistakes import ConfigurationError

Properties: TypeAlias = Mapping[str, Property]
Words: TypeAlias = dict[str, Any]

ALIAS: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
POLICIES: Final = {"DefaultReplicationPolicy": "prefixed", "IdentityReplicationPolicy": "identical"}
PACKAGE: Final = "org.apache.kafka.connect.mirror."
DEFAULT_REPLICATION_FACTOR: Final = 2
JAAS: Final = re.compile(
    r"""\s*\S*\.(?:Plain|Scram)LoginModule\s+required\b(?P<options>.*?);?\s*""", re.DOTALL
)
JAAS_OPTION: Final = re.compile(
    r"""(?P<key>\w+)\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)')"""
)
NO_COUNTERPART: Final = "has no counterpart here"
ALL_ALIKE: Final = "is of one client there; all of a cluster have its client."


@dataclass(slots=True)
class Imported:
    """Our configuration as YAML's own types, and what to tell the operator."""

    document: Words = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """Lines that begin with `file:line: key: `."""


def import_properties(properties: Properties, place: str, zookeeper: str) -> Imported:
    """Translate; raises ConfigurationError for what MirrorMaker itself could not use."""
    return _Import(properties, place).translated(zookeeper)


class _Import:
    """Remembers which properties were understood."""

    def __init__(self, properties: Properties, place: str) -> None:
        self._properties = properties
        self._place = place
        self._used: set[str] = set()
        self._result = Imported()

    def translated(self, zookeeper: str) -> Imported:
        aliases = self._aliases()
        flows = [
            self._flow(source, target)
            for source in aliases
            for target in aliases
            if source != target and self._is_enabled(source, target)
        ]
        if not flows:
            raise ConfigurationError(f"{self._place}: no flow is enabled, as A->B.enabled=true")
        initial_active = self._have_all_run(flows)
        self._result.document = {
            "clusters": {alias: self._cluster(alias) for alias in aliases},
            "flows": flows,
            "coordination": {"zookeeper": zookeeper},
            "failover": {"initial_active": initial_active},
        }
        for key, one in self._properties.items():
            if key not in self._used:
                setting = of_one_client(key)
                self._note(one, NO_COUNTERPART if setting is None else f"{ALL_ALIKE}{setting}")
        self._result.notes.sort(key=_by_line)
        return self._result

    def _have_all_run(self, flows: list[Words]) -> str:
        """Have every flow run as there, or name one that cannot; return the active site.

        MirrorMaker runs all flows always. Here a flow with identical names rests unless its source
        is the active site, or both directions say `active_active`.
        """
        identical = [flow for flow in flows if flow["names"] == "identical"]
        ways = {(flow["source"], flow["target"]) for flow in identical}
        for flow in identical:
            source, target = flow["source"], flow["target"]
            if (target, source) in ways:
                flow["active_active"] = True
                if source < target:
                    self._result.notes.append(
                        f"{self._place}: {source}->{target} and {target}->{source}: identical names"
                        " in both directions are imported with `active_active: true`, so that both"
                        " run always, as there; a promotion wants that taken out of both first"
                    )
        resting = [flow for flow in identical if "active_active" not in flow]
        initial_active = str(resting[0]["source"] if resting else flows[0]["source"])
        for flow in resting:
            if flow["source"] != initial_active:
                self._result.notes.append(
                    f"{self._place}: {flow['source']}->{flow['target']}: rests until a promotion"
                    f" makes {flow['source']} active: with identical names only the flows of one"
                    f" site run, here those of {initial_active}; give it a file of its own"
                )
        return initial_active

    # --- reading ---

    def _find(self, key: str, *prefixes: str) -> Property | None:
        """Return the property of the first prefix that has it; the others are used by that too."""
        found: Property | None = None
        for name in (*(f"{prefix}.{key}" for prefix in prefixes), key):
            one = self._properties.get(name)
            if one is not None:
                self._used.add(name)
                found = found or one
        return found

    def _find_of(self, alias: str, key: str) -> Property | None:
        return self._find(key, alias)

    def _flag(self, key: str, flow: str, *, default: bool) -> bool:
        one = self._find(key, flow)
        if one is None:
            return default
        if one.value.lower() not in {"true", "false"}:
            raise one.wrong(f"{one.value!r} is neither true nor false")
        return one.value.lower() == "true"

    def _number(self, key: str, flow: str) -> int | None:
        one = self._find(key, flow)
        if one is None:
            return None
        try:
            number = int(one.value)
        except ValueError:
            raise one.wrong(f"{one.value!r} is not a whole number") from None
        if number < 1:
            raise one.wrong(f"{one.value!r} is not 1 or more")
        return number

    def _patterns(self, key: str, flow: str) -> list[str] | None:
        one = self._find(key, flow)
        if one is None:
            return None
        patterns = [part.strip() for part in one.value.split(",") if part.strip()]
        for pattern in patterns:
            try:
                with warnings.catch_warnings():
                    # Java has nested and intersected sets, which mean something else here.
                    warnings.simplefilter("error", FutureWarning)
                    re.compile(pattern)
            except (re.error, FutureWarning) as problem:
                raise one.wrong(f"{pattern!r}: {problem}") from None
        return patterns

    def _excluded(self, key: str, flow: str) -> list[str] | None:
        """Return what must not be mirrored, by the name it had before Kafka 3.0 too."""
        old = self._patterns(f"{key}.blacklist", flow)
        new = self._patterns(f"{key}.exclude", flow)
        return old if new is None else new

    def _note(self, one: Property, text: str) -> None:
        self._result.notes.append(f"{one.place}: {one.key}: {text}")

    # --- clusters ---

    def _aliases(self) -> list[str]:
        one = self._find("clusters")
        if one is None:
            raise ConfigurationError(f"{self._place}: clusters: is missing")
        aliases = [alias.strip() for alias in one.value.split(",") if alias.strip()]
        for alias in aliases:
            if not ALIAS.fullmatch(alias):
                raise one.wrong(f"{alias!r}: a name has 1 to 64 letters, digits, '-' or '_'")
        if len(set(aliases)) < 2:
            raise one.wrong("needs two clusters or more")
        return list(dict.fromkeys(aliases))

    def _cluster(self, alias: str) -> Words:
        servers = self._find("bootstrap.servers", alias)
        if servers is None:
            raise ConfigurationError(f"{self._place}: {alias}.bootstrap.servers: is missing")
        parts = [part.strip() for part in servers.value.split(",")]
        addresses = [part.rpartition("://")[2] for part in parts if part]  # Kafka skips a protocol
        cluster: Words = {"bootstrap": addresses}
        find = partial(self._find_of, alias)
        client = client_words(find, self._note)
        protocol = self._find("security.protocol", alias)
        if protocol is None or protocol.value == "PLAINTEXT":
            return cluster | ({"client": client} if client else {})
        if protocol.value not in {"SSL", "SASL_PLAINTEXT", "SASL_SSL"}:
            raise protocol.wrong(f"{protocol.value!r} is no security protocol")
        cluster["security_protocol"] = protocol.value
        if protocol.value.endswith("SSL"):
            tls = tls_words(find, self._note, partial(self._secret, alias))
            cluster |= {"ssl": tls.ssl} if tls.ssl else {}
            client |= tls.client
        if protocol.value.startswith("SASL"):
            cluster["sasl"] = self._sasl(alias, protocol)
        return cluster | ({"client": client} if client else {})

    def _sasl(self, alias: str, protocol: Property) -> Words:
        mechanism = self._find("sasl.mechanism", alias)
        if mechanism is None:
            raise protocol.wrong(f"needs {alias}.sasl.mechanism")
        if mechanism.value not in {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}:
            how = (
                "say in the new file where its tokens come from: token_file, token_command or"
                " token_endpoint"
                if mechanism.value == "OAUTHBEARER"
                else f"{mechanism.value!r} is not spoken here"
            )
            raise mechanism.wrong(how)
        jaas = self._find("sasl.jaas.config", alias)
        found = None if jaas is None else JAAS.fullmatch(jaas.value)
        options = {
            one["key"]: one["double"] or one["single"] or ""
            for one in (JAAS_OPTION.finditer(found["options"]) if found else ())
        }
        if "username" not in options or "password" not in options:
            raise (jaas or mechanism).wrong("sasl.jaas.config has no username and password")
        return {
            "mechanism": mechanism.value,
            "username": options["username"],
            "password": self._secret(alias, "PASSWORD"),
        }

    def _secret(self, alias: str, name: str) -> str:
        """Return a reference to the environment: secrets are not copied into another file."""
        variable = f"{alias}_{name}".upper().replace("-", "_")
        self._result.notes.append(f"{self._place}: {alias}: its {name.lower()} is ${variable}")
        return f"${{{variable}}}"

    # --- flows ---

    def _is_enabled(self, source: str, target: str) -> bool:
        one = self._properties.get(f"{source}->{target}.enabled")
        if one is None:
            return False
        self._used.add(one.key)
        if one.value.lower() not in {"true", "false"}:
            raise one.wrong(f"{one.value!r} is neither true nor false")
        return one.value.lower() == "true"

    def _flow(self, source: str, target: str) -> Words:
        flow = f"{source}->{target}"
        words: Words = {"source": source, "target": target, **self._names(flow)}
        for key in ("topics", "groups"):
            patterns = {
                "include": self._patterns(key, flow),
                "exclude": self._excluded(key, flow),
            }
            given = {name: found for name, found in patterns.items() if found is not None}
            words |= {key: given} if given else {}
        words |= self._replication_factor(flow)
        for key, name in (
            ("refresh.topics.interval.seconds", "discovery_interval_ms"),
            ("sync.group.offsets.interval.seconds", "group_offsets_interval_ms"),
        ):
            seconds = self._number(key, flow)
            words |= {} if seconds is None else {name: seconds * 1_000}
        words |= self._settings(flow)
        if not self._flag("sync.topic.acls.enabled", flow, default=True):
            words["acls"] = "off"
        words["mirrormaker"] = self._own_topics(flow)
        words |= self._isolation(source, flow)
        words |= self._start(source, flow)
        self._tell_of_groups(flow)
        return words

    def _replication_factor(self, flow: str) -> Words:
        one = self._find("replication.factor", flow)
        if one is not None and one.value == "-1":
            self._note(one, "-1 is the target's default there; here it is as on the source")
            return {}
        factor = self._number("replication.factor", flow)
        return {"replication_factor": DEFAULT_REPLICATION_FACTOR if factor is None else factor}

    def _names(self, flow: str) -> Words:
        transforms = self._find("transforms", flow)
        if transforms is not None and transforms.value:
            raise transforms.wrong(
                f"what {transforms.value!r} makes of names and records is not done here: remove the"
                " line, and give topics other names by `rename` of the flow"
            )
        policy = self._find("replication.policy.class", flow)
        name = "DefaultReplicationPolicy" if policy is None else policy.value.removeprefix(PACKAGE)
        if name not in POLICIES:
            assert policy is not None, "the default is known"
            raise policy.wrong(f"how {name} names topics is not known here")
        separator = self._find("replication.policy.separator", flow)
        return {"names": POLICIES[name]} | ({"separator": separator.value} if separator else {})

    def _settings(self, flow: str) -> Words:
        settings: Words = {}
        if not self._flag("sync.topic.configs.enabled", flow, default=True):
            settings["include"] = []
        excluded = self._excluded("config.properties", flow)
        if excluded is not None:
            settings["exclude"] = excluded
        defaults = self._find("use.defaults.from", flow)
        if defaults is not None:
            if defaults.value not in {"source", "target"}:
                raise defaults.wrong(f"{defaults.value!r} is neither source nor target")
            settings["defaults_of"] = defaults.value
        return {"topic_settings": settings} if settings else {}

    def _own_topics(self, flow: str) -> Words:
        location = self._find("offset-syncs.topic.location", flow)
        if location is not None and location.value not in {"source", "target"}:
            raise location.wrong(f"{location.value!r} is neither source nor target")
        has_syncs = self._flag("emit.offset-syncs.enabled", flow, default=True)
        side = "source" if location is None else location.value
        words: Words = {
            "heartbeats": self._flag("emit.heartbeats.enabled", flow, default=True),
            "offset_syncs": side if has_syncs else "none",
        }
        seconds = self._number("emit.heartbeats.interval.seconds", flow)
        return words if seconds is None else words | {"interval_ms": seconds * 1_000}

    def _isolation(self, source: str, flow: str) -> Words:
        """MirrorMaker does by default what it should not: it copies aborted transactions."""
        one = self._find("consumer.isolation.level", flow, source, f"{flow}.source", "source")
        if one is None:
            self._result.notes.append(
                f"{self._place}: isolation.level: aborted transactions are mirrored there; here"
                f" only with `isolation: read_uncommitted` ({flow})"
            )
            return {}
        if one.value not in {"read_committed", "read_uncommitted"}:
            raise one.wrong(f"{one.value!r} is no isolation level")
        return {} if one.value == "read_committed" else {"isolation": one.value}

    def _start(self, source: str, flow: str) -> Words:
        """MirrorMaker's consumer begins so each partition that it has no offset of."""
        prefixes = (flow, source, f"{flow}.source", "source")
        found = [
            self._find(key, *prefixes)
            for key in ("consumer.auto.offset.reset", "auto.offset.reset")
        ]
        one = next((one for one in found if one is not None), None)
        if one is None or one.value == "earliest":
            return {}
        if one.value != "latest":
            raise one.wrong(f"{one.value!r} is neither earliest nor latest")
        self._note(
            one,
            "imported as `start: latest`: of partitions that are there when the flow first runs;"
            " there it skips records of each topic and partition that is made later as well",
        )
        return {"start": "latest"}

    def _tell_of_groups(self, flow: str) -> None:
        if not self._flag("sync.group.offsets.enabled", flow, default=False):
            one = self._find("sync.group.offsets.enabled", flow)
            where = f"{self._place}: " if one is None else f"{one.place}: "
            self._result.notes.append(
                f"{where}sync.group.offsets.enabled: is off there; here the positions of groups"
                f" without members on the target are always committed ({flow})"
            )


def _by_line(note: str) -> tuple[str, int, str]:
    file, _, rest = note.partition(":")
    number = rest.partition(":")[0]
    return file, int(number) if number.isdigit() else 0, note
