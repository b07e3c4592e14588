"""Where Kafka keeps what in ZooKeeper, and in which JSON. Pure; versions as Kafka 3.9 writes them.

Decoders raise MalformedNode, naming the path, when a node holds something else.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote, unquote
from uuid import UUID

from broker.listeners import Listener, SecurityProtocol
from runtime.untrusted_json import LARGEST_INT32, read_json, text, whole_number
from wire.values import frozen

BROKERS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
DEFAULT_BROKER_CONFIG: Final = f"{BROKER_CONFIGS}/<default>"
USER_CONFIGS: Final = "/config/users"
CONFIG_CHANGES: Final = "/config/changes"
CONFIG_CHANGE_PREFIX: Final = f"{CONFIG_CHANGES}/config_change_"
DELETE_TOPICS: Final = "/admin/delete_topics"
LOG_DIR_EVENTS: Final = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX: Final = f"{LOG_DIR_EVENTS}/log_dir_event_"
LOG_DIR_FAILED: Final = 1
LARGEST_PORT: Final = 65_535
CLUSTER_ID: Final = "/cluster/id"
BROKERS_PROOF: Final = "/cluster/secret"
"""Our own: Apache Kafka's brokers know each other by their credentials only."""
OWNER: Final = "/cluster/owner"
"""Our own: the login that every node has been given to."""
PRODUCER_IDS: Final = "/latest_producer_id_block"
PERSISTENT: Final = (
    BROKERS,
    TOPICS,
    TOPIC_CONFIGS,
    BROKER_CONFIGS,
    "/config/clients",
    USER_CONFIGS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    "/isr_change_notification",
    LOG_DIR_EVENTS,
    "/cluster",
)


_NOT_IN_NAMES: Final = re.compile("[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


class MalformedNode(ValueError):
    """A node that is not in Kafka's form; the message names its path."""


@frozen
class BrokerRegistration:
    """The registration of a live broker. `epoch` is the node's creation zxid, as in Kafka.

    host, port   where other brokers reach it
    endpoints    where clients do, by listener; none for one that names only host and port, as
                 Kafka's before 0.9
    """

    broker_id: int
    host: str
    port: int
    rack: str | None = None
    epoch: int = -1
    endpoints: tuple[Listener, ...] = ()

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Return all its addresses."""
        return self.endpoints or (Listener(name="PLAINTEXT", host=self.host, port=self.port),)


@frozen
class TopicAssignment:
    """Which brokers hold which partition, the preferred leader first.

    While a partition moves (KIP-455) `replicas` lists those it goes to and then those it leaves:
    `adding` are the ones that did not hold it before, `removing` those that will not hold it after.
    """

    topic_id: UUID
    replicas: Mapping[int, tuple[int, ...]]
    adding: Mapping[int, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    removing: Mapping[int, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def moving(self) -> frozenset[int]:
        """Return the partitions that are on the move."""
        return frozenset(self.adding.keys() | self.removing.keys())

    def origin(self, index: int) -> tuple[int, ...]:
        """Return who held the partition before it began to move."""
        added = self.adding.get(index, ())
        return tuple(broker for broker in self.replicas[index] if broker not in added)

    def target(self, index: int) -> tuple[int, ...]:
        """Return who will hold the partition when it has moved."""
        removed = self.removing.get(index, ())
        return tuple(broker for broker in self.replicas[index] if broker not in removed)


@frozen
class LeaderAndIsr:
    """The leader and the ISR of a partition; `leader` is -1 when nobody can lead."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    version: int = -1
    """The node's version in ZooKeeper, -1 before it exists; every write is checked against it."""
    recovery: int = 0
    """1 from an unclean election until the new leader has said that it has settled (KIP-704)."""
    written_zxid: int = field(default=-1, compare=False)
    """When ZooKeeper took what a new controller has read, on the scale of broker epochs, or -1."""


@frozen
class ProducerIdBlock:
    """The newest range of producer ids handed to a broker, both ends included."""

    broker_id: int
    first: int
    last: int


def broker_path(broker_id: int) -> str:
    """Return the node by which a live broker is registered."""
    return f"{BROKERS}/{broker_id}"


def topic_path(topic: str) -> str:
    """Return the node that holds a topic's assignment."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """Return the parent of a topic's partitions."""
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, index: int) -> str:
    """Return the parent of a partition's state."""
    return f"{partitions_path(topic)}/{index}"


def state_path(topic: str, index: int) -> str:
    """Return the node that holds a partition's leader and ISR."""
    return f"{partition_path(topic, index)}/state"


def topic_config_path(topic: str) -> str:
    """Return the node that holds a topic's settings."""
    return f"{TOPIC_CONFIGS}/{topic}"


def broker_config_path(broker_id: int) -> str:
    """Return the node that holds one broker's dynamic settings."""
    return f"{BROKER_CONFIGS}/{broker_id}"


def encode_user(name: str) -> str:
    """Return a user's name as it is in paths (Kafka's Sanitizer): URL-encoded.

    Two names are encoded here alone: ZooKeeper has no nodes `.` and `..`.
    """
    if name in {".", ".."}:
        return name.replace(".", "%2E")
    return quote(name, safe="").replace("~", "%7E")


def decode_user(encoded: str) -> str:
    """Return the name that `encode_user` has encoded."""
    return unquote(encoded)


def user_config_path(name: str) -> str:
    """Return the node that holds a user's credentials and quotas."""
    return f"{USER_CONFIGS}/{encode_user(name)}"


def delete_topic_path(topic: str) -> str:
    """Return the node by which the deletion of a topic is asked for."""
    return f"{DELETE_TOPICS}/{topic}"


def encode_topic_id(topic_id: UUID) -> str:
    """Return Kafka's text of a UUID: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def decode_topic_id(text: str) -> UUID:
    """Return the UUID that `encode_topic_id` has encoded. Raises ValueError."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def encode_broker(endpoints: Sequence[Listener], rack: str | None, now_ms: int) -> bytes:
    """Return the registration (version 5) of a broker that clients reach at `endpoints`.

    Host and port are for clients that know no listeners, and so speak PLAINTEXT.
    """
    plain = [one for one in endpoints if one.protocol is SecurityProtocol.PLAINTEXT]
    value = {
        "version": 5,
        "host": plain[0].host if plain else None,
        "port": plain[0].port if plain else -1,
        "endpoints": [str(one) for one in endpoints],
        "jmx_port": -1,
        "timestamp": str(now_ms),
        "listener_security_protocol_map": {one.name: one.protocol.name for one in endpoints},
        "features": {},
    }
    return dump_json(value if rack is None else {**value, "rack": rack})


def decode_broker(
    broker_id: int, data: bytes, epoch: int, inter_broker: str = "PLAINTEXT"
) -> BrokerRegistration:
    """Return a registration; `inter_broker` names the listener by which brokers reach it.

    A broker that has no such listener is reached, if at all, at its first.
    """
    value = load_json(broker_path(broker_id), data)
    try:
        protocols = value.get("listener_security_protocol_map", {})
        endpoints = tuple(_endpoint(one, protocols) for one in value.get("endpoints", ()))
        first = endpoints[0] if endpoints else None
        reached = next((one for one in endpoints if one.name == inter_broker), first)
        return BrokerRegistration(
            broker_id=broker_id,
            host=text(value["host"]) if reached is None else reached.host,
            port=whole_number(value["port"], LARGEST_PORT) if reached is None else reached.port,
            rack=None if value.get("rack") is None else text(value["rack"]),
            epoch=epoch,
            endpoints=endpoints,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MalformedNode(f"{broker_path(broker_id)}: {error!r}") from error


def _endpoint(endpoint: object, protocols: Mapping[str, str]) -> Listener:
    """Return an address; before version 4 a listener's name is its protocol."""
    name, _, address = text(endpoint).partition("://")
    host, _, port = address.rpartition(":")
    protocol = SecurityProtocol[protocols.get(name, name)]
    number = _number(port)
    if number > LARGEST_PORT:
        raise ValueError(f"{number} is no port")
    return Listener(name=name, host=host.strip("[]"), port=number, protocol=protocol)


def decode_broker_id(name: str) -> int:
    """Return the id that a registration's node is named by. Raises MalformedNode."""
    try:
        return whole_number(_number(name), LARGEST_INT32)
    except ValueError as error:
        raise MalformedNode(f"{BROKERS}/{name}: {error}") from error


def encode_topic(assignment: TopicAssignment) -> bytes:
    """Return a topic's assignment (version 3)."""
    return dump_json(
        {
            "version": 3,
            "topic_id": encode_topic_id(assignment.topic_id),
            "partitions": _listed(assignment.replicas),
            "adding_replicas": _listed(assignment.adding),
            "removing_replicas": _listed(assignment.removing),
        }
    )


def _listed(replicas: Mapping[int, tuple[int, ...]]) -> dict[str, list[int]]:
    return {str(index): list(ids) for index, ids in replicas.items() if ids}


def _numbered(listed: Mapping[str, Sequence[int]]) -> dict[int, tuple[int, ...]]:
    return dict(
        sorted((_number(index), tuple(map(_id, ids))) for index, ids in listed.items() if ids)
    )


def _id(value: object) -> int:
    return whole_number(value, LARGEST_INT32)


def _number(value: object) -> int:
    """Return a whole number, which Kafka writes as a text in some places; raises ValueError."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return whole_number(int(value))
    return whole_number(value)


def _leader(value: object) -> int:
    return -1 if value == -1 and type(value) is int else _id(value)


def decode_topic(topic: str, data: bytes) -> TopicAssignment:
    """Return a topic's assignment. Raises MalformedNode."""
    value = load_json(topic_path(topic), data)
    try:
        return TopicAssignment(
            topic_id=decode_topic_id(value["topic_id"]),
            replicas=_numbered(value["partitions"]),
            adding=_numbered(value.get("adding_replicas", {})),
            removing=_numbered(value.get("removing_replicas", {})),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MalformedNode(f"{topic_path(topic)}: {error!r}") from error


def encode_state(state: LeaderAndIsr) -> bytes:
    """Return a partition's state (version 1)."""
    value = {
        "version": 1,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "controller_epoch": state.controller_epoch,
        "isr": list(state.isr),
    }
    return dump_json(
        {**value, "leader_recovery_state": state.recovery} if state.recovery else value
    )


def decode_state(path: str, data: bytes, version: int) -> LeaderAndIsr:
    """Return a partition's state; `version` is the node's. Raises MalformedNode."""
    value = load_json(path, data)
    try:
        return LeaderAndIsr(
            leader=_leader(value["leader"]),
            leader_epoch=_id(value["leader_epoch"]),
            isr=tuple(map(_id, value["isr"])),
            controller_epoch=_id(value["controller_epoch"]),
            version=version,
            recovery=_id(value.get("leader_recovery_state", 0)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedNode(f"{path}: {error!r}") from error


def encode_controller(broker_id: int, now_ms: int) -> bytes:
    """Return the controller's registration (version 2)."""
    return dump_json(
        {
            "version": 2,
            "brokerid": broker_id,
            "timestamp": str(now_ms),
            "kraftControllerEpoch": -1,
        }
    )


def decode_controller_epoch(data: bytes) -> int:
    """Return the epoch of the newest controller. Raises MalformedNode."""
    try:
        return _number(data.decode("ascii"))
    except ValueError as error:
        raise MalformedNode(f"{CONTROLLER_EPOCH}: {error}") from error


def decode_controller(data: bytes) -> int:
    """Return the controller's broker id. Raises MalformedNode."""
    try:
        return _id(load_json(CONTROLLER, data)["brokerid"])
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedNode(f"{CONTROLLER}: {error!r}") from error


def encode_config(config: Mapping[str, str]) -> bytes:
    """Return the dynamic settings of one topic or of all brokers (version 1)."""
    return dump_json({"version": 1, "config": dict(config)})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    """Return settings; none where a node is only the parent of others, as a user's of quotas."""
    if not data:
        return {}
    try:
        return {str(key): str(value) for key, value in load_json(path, data)["config"].items()}
    except (KeyError, AttributeError) as error:
        raise MalformedNode(f"{path}: {error!r}") from error


def encode_config_change(entity_path: str) -> bytes:
    """Return the notification (version 2) that `topics/<t>` or `brokers/<default>` changed."""
    return dump_json({"version": 2, "entity_path": entity_path})


def decode_config_change(path: str, data: bytes) -> str:
    """Return the entity whose settings changed, as `topics/<t>`. Raises MalformedNode.

    ZooKeeper's client throws at a path that cannot be, so one is refused here.
    """
    try:
        entity = text(load_json(path, data)["entity_path"])
    except (KeyError, ValueError) as error:
        raise MalformedNode(f"{path}: {error!r}") from error
    if not all(map(is_node_name, entity.split("/"))):
        raise MalformedNode(f"{path}: {entity!r:.200} is no path")
    return entity


def is_node_name(name: str) -> bool:
    """Say whether ZooKeeper can have a node of this name (its PathUtils)."""
    return name not in {"", ".", ".."} and not _NOT_IN_NAMES.search(name)


def encode_log_dir_failure(broker_id: int) -> bytes:
    """Return the notification (version 1) that one of a broker's log folders has failed."""
    return dump_json({"version": 1, "broker": broker_id, "event": LOG_DIR_FAILED})


def decode_log_dir_failure(path: str, data: bytes) -> int:
    """Return the broker's id."""
    try:
        return _id(load_json(path, data)["broker"])
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedNode(f"{path}: {error!r}") from error


def encode_broker_secret(secret: str) -> bytes:
    """Return the node by which brokers of this cluster know each other."""
    return dump_json({"version": 1, "secret": secret})


def decode_broker_secret(data: bytes) -> str:
    """Return what only brokers of this cluster know. Raises MalformedNode, which quotes nothing."""
    try:
        secret = text(load_json(BROKERS_PROOF, data)["secret"])
    except (KeyError, TypeError, ValueError):
        raise MalformedNode(f"{BROKERS_PROOF}: is not in its form") from None
    if not secret:
        raise MalformedNode(f"{BROKERS_PROOF}: is empty")
    return secret


def encode_owner(identity: str) -> bytes:
    """Return the node that says whose all nodes are, as `digest:<user>:<hash>`."""
    return dump_json({"version": 1, "owner": identity})


def decode_owner(data: bytes) -> str:
    """Return whose all nodes are. Raises MalformedNode."""
    try:
        return text(load_json(OWNER, data)["owner"])
    except (KeyError, TypeError, ValueError):
        raise MalformedNode(f"{OWNER}: is not in its form") from None


def encode_cluster_id(cluster_id: str) -> bytes:
    """Return the node's data (version 1) for a cluster id."""
    return dump_json({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    """Return the cluster id. Raises MalformedNode."""
    try:
        return text(load_json(CLUSTER_ID, data)["id"])
    except (KeyError, ValueError) as error:
        raise MalformedNode(f"{CLUSTER_ID}: {error!r}") from error


def encode_producer_ids(block: ProducerIdBlock) -> bytes:
    """Return the node's data (version 1) for the newest block of producer ids."""
    return dump_json(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.first),
            "block_end": str(block.last),
        }
    )


def decode_producer_ids(data: bytes) -> ProducerIdBlock:
    """Return the newest block of producer ids. Raises MalformedNode."""
    value = load_json(PRODUCER_IDS, data)
    try:
        return ProducerIdBlock(
            broker_id=_id(value["broker"]),
            first=_number(value["block_start"]),
            last=_number(value["block_end"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedNode(f"{PRODUCER_IDS}: {error!r}") from error


def dump_json(value: Mapping[str, object]) -> bytes:
    """Return a node's data in the form that Kafka writes."""
    return json.dumps(value, separators=(",", ":")).encode()


def load_json(path: str, data: bytes) -> dict[str, Any]:
    """Return the JSON object that a node holds. Raises MalformedNode."""
    try:
        value = read_json(data)
    except ValueError as error:
        raise MalformedNode(f"{path}: {error}") from error
    if not isinstance(value, dict):
        raise MalformedNode(f"{path}: {data[:40]!r} is not a JSON object")
    return value
