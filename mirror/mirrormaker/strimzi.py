"""Strimzi's resource `KafkaMirrorMaker2` as the properties that its operator gives MirrorMaker.

Both forms are read: `clusters` with `mirrors` that name them (v1beta2), and `target` with a
`source` in each mirror (v1). What is secret lies in Secrets of Kubernetes: the new file names files
where they are mounted, as `SECRET/KEY` beside it. Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import yaml

from mirror.mirrormaker.mm2_properties import Imported, Properties, Words, import_properties
from runtime.configuration.properties import Property
from runtime.configuration.reading.mistakes import ConfigurationError
from runtime.configuration.reading.section import Section

KIND: Final = "KafkaMirrorMaker2"
PATTERNS: Final = {
    "topicsPattern": "topics",
    "topicsExcludePattern": "topics.exclude",
    "topicsBlacklistPattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsExcludePattern": "groups.exclude",
    "groupsBlacklistPattern": "groups.exclude",
}
CONNECTORS: Final = ("sourceConnector", "heartbeatConnector", "checkpointConnector")
RESTING: Final = ("paused", "stopped")
MECHANISMS: Final = {
    "plain": "PLAIN",
    "scram-sha-256": "SCRAM-SHA-256",
    "scram-sha-512": "SCRAM-SHA-512",
    "oauth": "OAUTHBEARER",
}
CERTIFICATES: Final = "ca.crt"
"""The key under which Strimzi's own Secrets of authorities have their certificates."""
OF_OAUTH: Final = {
    "tokenEndpointUri": "token_endpoint",
    "clientId": "client_id",
    "scope": "scope",
    "audience": "audience",
    "accessTokenLocation": "token_file",
}
"""Texts of a login by tokens, and what they are called here."""


def import_strimzi(documents: Sequence[Section], place: str, zookeeper: str) -> Imported:
    """Translate the one resource of this kind that is among the documents.

    Raises ConfigurationError, also for a resource that Kubernetes would not take.
    """
    found = [one for one in documents if one.optional_string("kind") == KIND]
    if len(found) != 1:
        raise ConfigurationError(f"{place}: has {len(found)} resources of kind {KIND}, not one")
    [resource] = found
    reading = _Resource(place)
    resource.attempt(lambda: reading.read(resource.section("spec")))
    if resource.reading.mistakes.within("") is not None:
        raise resource.reading.mistakes.together()
    imported = import_properties(reading.properties, place, zookeeper)
    for alias, words in reading.logins.items():
        imported.document["clusters"][alias] |= words
    imported.notes += reading.notes
    return imported


@dataclass(slots=True)
class _Resource:
    """What has been read of the resource."""

    place: str
    found: dict[str, Property] = field(default_factory=dict)
    logins: dict[str, Words] = field(default_factory=dict)
    """By alias, how the cluster is spoken to, in our words."""
    notes: list[str] = field(default_factory=list)

    @property
    def properties(self) -> Properties:
        """Return what has been read, with the aliases in the order in which they came."""
        names = Property(key="clusters", value=",".join(self.logins), place=self.place)
        return {"clusters": names, **self.found}

    def read(self, spec: Section) -> None:
        """Take the whole of `spec`."""
        if "clusters" in spec.values:
            for cluster in spec.sections("clusters"):
                spec.attempt(partial(self._cluster, cluster))
        target = None
        if "target" in spec.values:
            target = self._cluster(spec.section("target"))
        for mirror in spec.sections("mirrors"):
            spec.attempt(partial(self._mirror, mirror, target))

    def _cluster(self, cluster: Section) -> str:
        """Take a cluster and return its alias."""
        alias = cluster.string("alias")
        if alias in self.logins:
            return alias
        self._put(cluster, "bootstrapServers", f"{alias}.bootstrap.servers", required=True)
        for config, key in _config(cluster):
            self._put(config, key, f"{alias}.{key}")
        self.logins[alias] = self._login(alias, cluster)
        return alias

    def _mirror(self, mirror: Section, target: str | None) -> None:
        if target is None:
            source, target = mirror.string("sourceCluster"), mirror.string("targetCluster")
        else:
            source = self._cluster(mirror.section("source"))
        flow = f"{source}->{target}"
        for alias, key in ((source, "sourceCluster"), (target, "targetCluster")):
            if alias not in self.logins:
                raise mirror.error(key, f"{alias!r} is the alias of no cluster")
        if "sourceConnector" not in mirror.values:
            self.notes.append(self._about(mirror, flow, "has no sourceConnector: mirrors nothing"))
        self._say(mirror, f"{flow}.enabled", is_so="sourceConnector" in mirror.values)
        if "heartbeatConnector" not in mirror.values:
            self._say(mirror, f"{flow}.emit.heartbeats.enabled", is_so=False)
        for key, name in PATTERNS.items():
            self._put(mirror, key, f"{flow}.{name}")
        for connector in CONNECTORS:
            if connector in mirror.values:
                self._connector(flow, mirror.section(connector))

    def _connector(self, flow: str, connector: Section) -> None:
        for config, key in _config(connector):
            self._put(config, key, f"{flow}.{key}")
        if connector.boolean("pause", default=False) or (
            connector.optional_string("state") in RESTING
        ):
            self.notes.append(self._about(connector, flow, "rests there; here its flow runs"))

    # --- how a cluster is spoken to ---

    def _login(self, alias: str, cluster: Section) -> Words:
        words: Words = {}
        has_tls = "tls" in cluster.values
        ssl: Words = {}
        if has_tls:
            ssl |= self._authorities(alias, cluster.section("tls"), "trustedCertificates", "ca")
        kind = None
        if "authentication" in cluster.values:
            login = cluster.section("authentication")
            kind = login.choice("type", ("tls", *MECHANISMS))
            if kind == "tls":
                own = login.section("certificateAndKey")
                for key in ("certificate", "key"):
                    ssl[key] = self._secret(alias, own, key)
            else:
                words["sasl"] = self._sasl(alias, login, MECHANISMS[kind])
        words |= {"ssl": ssl} if ssl else {}
        protocol = ("SASL_" if "sasl" in words else "") + ("SSL" if has_tls else "PLAINTEXT")
        if kind == "tls" and not has_tls:
            raise cluster.error("authentication", "takes tls, which the cluster has not")
        return words if protocol == "PLAINTEXT" else {"security_protocol": protocol, **words}

    def _sasl(self, alias: str, login: Section, mechanism: str) -> Words:
        words: Words = {"mechanism": mechanism}
        if mechanism != "OAUTHBEARER":
            secret = login.section("passwordSecret")
            password = self._secret(alias, secret, "password")
            return {**words, "username": login.string("username"), "password_file": password}
        for key, name in OF_OAUTH.items():
            text = login.optional_string(key)
            words |= {} if text is None else {name: text}
        for key, name in (("clientSecret", "client_secret_file"), ("accessToken", "token_file")):
            if key in login.values:
                words[name] = self._secret(alias, login.section(key), "key")
        return words | self._authorities(
            alias, login, "tlsTrustedCertificates", "token_endpoint_ca"
        )

    def _authorities(self, alias: str, section: Section, key: str, name: str) -> Words:
        """Return where the authorities are that a section trusts; the system's where none is."""
        if key not in section.values or not section.values[key].value:
            return {}
        sources = list(section.sections(key))
        if len(sources) > 1:
            here = self._about(section, alias, f"{key}: put all of them into the first one's file")
            self.notes.append(here)
        if not sources:
            return {}
        named = sources[0]
        if "certificate" in named.values:
            return {name: self._secret(alias, named, "certificate")}
        return {name: self._mounted(alias, named, CERTIFICATES)}

    def _secret(self, alias: str, section: Section, key: str) -> str:
        """Return the file of what a Secret has under the key that `key` names."""
        return self._mounted(alias, section, section.string(key))

    def _mounted(self, alias: str, section: Section, key: str) -> str:
        secret = section.string("secretName")
        note = self._about(
            section, alias, f"mount the Secret {secret} beside the file: {secret}/{key}"
        )
        self.notes.append(note)
        return f"{secret}/{key}"

    # --- places ---

    def _about(self, section: Section, name: str, text: str) -> str:
        return f"{_place(section, section.node)}: {name}: {text}"

    def _say(self, section: Section, name: str, *, is_so: bool) -> None:
        place = _place(section, section.node)
        self.found[name] = Property(key=name, value=str(is_so).lower(), place=place)

    def _put(self, section: Section, key: str, name: str, *, required: bool = False) -> None:
        """Take a text, number or truth of the resource as a property."""
        node = section.values.get(key)
        if node is None:
            if required:
                raise section.missing(key)
            return
        if not isinstance(node, yaml.ScalarNode):
            raise section.error(key, "must be a text, a number, or true or false")
        self.found[name] = Property(key=name, value=str(node.value), place=_place(section, node))


def _config(section: Section) -> Iterator[tuple[Section, str]]:
    """Yield the keys of a section's `config`, with that."""
    if "config" in section.values:
        config = section.section("config")
        for key in config.values:
            yield config, key


def _place(section: Section, node: yaml.Node) -> str:
    return f"{section.reading.file}:{node.start_mark.line + 1}"
