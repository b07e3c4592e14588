"""A broker's settings as administrators are told of them: each one's type and meaning. Pure."""

from collections.abc import Mapping
from typing import Final, get_origin

from broker.config import ACCEPTED_WITHOUT_EFFECT, MAX_INT, MAX_SHORT, SECRETS, SETTINGS
from broker.log.config import TOPIC_CONFIGS, ConfigType

TEXTS: Final = frozenset({"log.dirs", "super.users", "listeners", "advertised.listeners"})
"""Lists that Kafka has as texts."""
WITHOUT_EFFECT: Final = "taken without effect: this broker has no such threads, queues or buffers"


def explained(name: str) -> tuple[ConfigType, str | None]:
    """Return how the value of a broker's setting is written, and what it does.

    One that is not known here is a text of which nothing is said.
    """
    return _EXPLAINED.get(name, (ConfigType.STRING, None))


def _type(name: str) -> ConfigType:
    declared = SETTINGS[name]
    if name in SECRETS:
        return ConfigType.PASSWORD
    if declared.type is bool:
        return ConfigType.BOOLEAN
    if declared.type is float:
        return ConfigType.DOUBLE
    if declared.type is int:
        return _whole(declared.metadata["maximum"])
    is_list = get_origin(declared.type) is tuple and name not in TEXTS
    return ConfigType.LIST if is_list else ConfigType.STRING


def _whole(most: float) -> ConfigType:
    if most == MAX_SHORT:
        return ConfigType.SHORT
    return ConfigType.INT if most <= MAX_INT else ConfigType.LONG


RUN_TIME_ONLY: Final[Mapping[str, tuple[ConfigType, str]]] = {
    "write.fence.topics": (ConfigType.LIST, "topics that take no writes"),
    "write.fence.patterns": (
        ConfigType.STRING,
        "patterns of such topics as JSON; topics made meanwhile are closed, too",
    ),
    "write.fence.allowed.client.ids": (ConfigType.LIST, "clients that write there all the same"),
    "write.fence.rebootstrap": (
        ConfigType.BOOLEAN,
        "send clients of closed topics to their bootstrap servers (KIP-1102)",
    ),
    "leader.replication.throttled.rate": (
        ConfigType.LONG,
        "bytes a second that a leader sends for throttled replicas",
    ),
    "follower.replication.throttled.rate": (
        ConfigType.LONG,
        "bytes a second that a follower fetches for throttled replicas",
    ),
}
"""Settings that no file has."""

MEANINGS: Final[Mapping[str, str]] = {
    "broker.id": "the broker's number, unique in its cluster",
    "broker.rack": "where the broker stands; replicas of a partition go to different racks",
    "listeners": "addresses to listen on, NAME://host:port",
    "advertised.listeners": "addresses that clients and brokers are told; as listeners where unset",
    "listener.security.protocol.map": "what is spoken at each listener, NAME:PROTOCOL",
    "inter.broker.listener.name": "the listener by which brokers come to each other",
    "security.inter.broker.protocol": "the protocol of that listener, where it is not named",
    "ssl.keystore.type": "format of the file with the broker's key and certificates",
    "ssl.keystore.location": "file with the broker's key and certificates",
    "ssl.key.password": "password of the broker's key",
    "ssl.truststore.type": "format of the file with the certificates that are trusted",
    "ssl.truststore.location": "file with the certificates that clients' ones are checked against",
    "ssl.client.auth": "whether clients show a certificate",
    "ssl.principal.mapping.rules": "how a certificate's name becomes a user's",
    "ssl.endpoint.identification.algorithm": "whether brokers check each other's host names",
    "sasl.enabled.mechanisms": "SASL mechanisms that clients may use",
    "sasl.mechanism.inter.broker.protocol": "the SASL mechanism of brokers among themselves",
    "sasl.jaas.config": "users and passwords, in Java's format",
    "sasl.oauthbearer.jwks.endpoint.url": "file with the keys that sign tokens, as file:///path",
    "sasl.oauthbearer.expected.audience": "audiences of which a token has to name one",
    "sasl.oauthbearer.expected.issuer": "who has to have issued a token",
    "sasl.oauthbearer.sub.claim.name": "the claim of a token that holds the user's name",
    "sasl.oauthbearer.clock.skew.seconds": "how far the issuer's clock may differ",
    "sasl.server.max.receive.size": "the largest SASL message that is accepted, in bytes",
    "super.users": "users that may do everything, User:alice;User:bob",
    "authorizer.class.name": "who judges rights; nobody where it is empty, and all is allowed",
    "allow.everyone.if.no.acl.found": "whether all may use what no entry speaks of",
    "write.fence.enable": "whether topics can be closed by write.fence.topics; else by rights",
    "connections.max.reauth.ms": "how long a SASL login counts; 0 is for ever",
    "connection.failed.authentication.delay.ms": "how long the answer to a failed login waits",
    "log.dirs": "folders of the partitions' logs",
    "metrics.port": "port of Prometheus metrics; -1 serves none",
    "chunk.kernel.enable": "read Produce requests in native code, where that was built; "
    "false: in Python, which does the same for more processor time",
    "metrics.host": "address of the metrics' port",
    "zookeeper.connect": "ZooKeeper's servers, host:port[,host:port][/chroot]",
    "zookeeper.session.timeout.ms": "how long ZooKeeper may hear nothing before the broker is dead",
    "zookeeper.connection.timeout.ms": "how long a start waits for ZooKeeper",
    "zookeeper.username": "the broker's name at ZooKeeper",
    "zookeeper.password.file": "file with its password there; without it there is no login",
    "zookeeper.set.acl": "whether nodes in ZooKeeper are for that login alone",
    "num.partitions": "partitions of a topic that is made without a number",
    "default.replication.factor": "replicas of a topic that is made without a number",
    "auto.create.topics.enable": "whether a topic is made when a client asks for it",
    "delete.topic.enable": "whether topics can be deleted",
    "replica.lag.time.max.ms": "how long a follower may lag before it leaves the ISR",
    "replica.fetch.max.bytes": "bytes that a follower fetches of one partition at a time",
    "replica.fetch.wait.max.ms": "how long a follower's fetch waits for data",
    "replica.fetch.min.bytes": "bytes that a follower's fetch waits for",
    "replica.fetch.response.max.bytes": "bytes of one answer to a follower",
    "replica.fetch.backoff.ms": "how long a follower rests after a failed fetch",
    "replica.socket.timeout.ms": "how long a follower waits for its leader's answer",
    "replica.high.watermark.checkpoint.interval.ms": "how often high watermarks go to disk",
    "replica.selector.class": "who chooses the replica that a consumer reads from (KIP-392)",
    "max.incremental.fetch.session.cache.slots": "fetch sessions that are kept (KIP-227)",
    "auto.leader.rebalance.enable": "whether leaders go back to their preferred brokers",
    "leader.imbalance.check.interval.seconds": "how often it is looked whether they should",
    "leader.imbalance.per.broker.percentage": "share of strayed leaders at which they go back",
    "controlled.shutdown.enable": "whether a broker that ends gives its leaderships away first",
    "request.timeout.ms": "how long brokers wait for each other's answers",
    "socket.request.max.bytes": "the largest request that is accepted",
    "connections.max.idle.ms": "how long a connection may be silent; -1 is for ever",
    "max.connections": "connections in all, and by listener",
    "max.connections.per.ip": "connections from one address",
    "max.connections.per.ip.overrides": "another limit for some addresses, address:number",
    "socket.listen.backlog.size": "connections that wait to be accepted",
    "fetch.max.bytes": "bytes of one answer to a consumer",
    "log.retention.check.interval.ms": "how often it is looked for segments to delete",
    "log.cleaner.enable": "whether compacted topics are compacted",
    "log.cleaner.backoff.ms": "how long the cleaner rests when nothing is to be compacted",
    "log.cleaner.dedupe.buffer.size": "bytes for the keys of one compaction",
    "log.cleaner.io.buffer.load.factor": "share of that buffer that is filled",
    "log.cleaner.io.max.bytes.per.second": "bytes a second that the cleaner reads and writes",
    "log.flush.scheduler.interval.ms": "how often it is looked whether a log is to be flushed",
    "producer.id.expiration.ms": "how long an idle producer's sequences are remembered",
    "transactional.id.expiration.ms": "how long an idle transactional id is remembered",
    "transaction.max.timeout.ms": "the longest time that a transaction may ask for",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        "how often transactions that are over their time are aborted"
    ),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        "how often idle transactional ids are forgotten"
    ),
    "transaction.state.log.num.partitions": "partitions of __transaction_state",
    "transaction.state.log.replication.factor": "replicas of __transaction_state",
    "transaction.state.log.min.isr": "in-sync replicas that __transaction_state needs for a write",
    "transaction.state.log.segment.bytes": "segment size of __transaction_state",
    "offsets.topic.num.partitions": "partitions of __consumer_offsets",
    "offsets.topic.replication.factor": "replicas of __consumer_offsets",
    "offsets.topic.segment.bytes": "segment size of __consumer_offsets",
    "offsets.topic.compression.codec": "codec of __consumer_offsets, by Kafka's number",
    "offsets.retention.minutes": "how long positions of a group without members are kept",
    "offsets.retention.check.interval.ms": "how often it is looked for positions to forget",
    "offsets.commit.timeout.ms": "how long a commit waits for the replicas",
    "offsets.load.buffer.size": "bytes that are read at a time when positions are loaded",
    "offset.metadata.max.bytes": "bytes of text that a position may carry",
    "group.initial.rebalance.delay.ms": "how long a new group waits for more members",
    "group.min.session.timeout.ms": "the shortest session that a member may ask for",
    "group.max.session.timeout.ms": "the longest session that a member may ask for",
    "group.max.size": "members of one group",
    "group.coordinator.rebalance.protocols": "group protocols that are served",
    "group.consumer.session.timeout.ms": "how long a member of the new protocol may be silent",
    "group.consumer.min.session.timeout.ms": "the least that a group may set for that",
    "group.consumer.max.session.timeout.ms": "the most that a group may set for that",
    "group.consumer.heartbeat.interval.ms": "how often a member of the new protocol beats",
    "group.consumer.min.heartbeat.interval.ms": "the least that a group may set for that",
    "group.consumer.max.heartbeat.interval.ms": "the most that a group may set for that",
    "group.consumer.max.size": "members of one group of the new protocol",
    "group.consumer.assignors": "assignors of the new protocol, the default first",
    "group.consumer.migration.policy": "whether groups go from one protocol to the other",
}

_EXPLAINED: Final[Mapping[str, tuple[ConfigType, str | None]]] = {
    **{name: (_type(name), meaning) for name, meaning in MEANINGS.items()},
    **{one.broker_name: (one.type, one.doc) for one in TOPIC_CONFIGS.values() if one.broker_name},
    **dict.fromkeys(ACCEPTED_WITHOUT_EFFECT, (ConfigType.INT, WITHOUT_EFFECT)),
    **RUN_TIME_ONLY,
}
