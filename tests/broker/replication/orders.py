"""What a controller tells a broker: to stop a replica, to follow another leader, to know nobody."""

from typing import Any

from tests.broker.rig import TOPIC_ID
from wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from wire.messages.update_metadata import UpdateMetadataRequest

STOPS = StopReplicaRequest(
    controller_id=0,
    controller_epoch=1,
    topic_states=(
        StopReplicaTopicState(
            topic_name="t",
            partition_states=(
                StopReplicaPartitionState(partition_index=0, leader_epoch=5, delete_partition=True),
            ),
        ),
    ),
)
DEPOSES = LeaderAndIsrRequest(
    controller_id=0,
    controller_epoch=1,
    topic_states=(
        LeaderAndIsrTopicState(
            topic_name="t",
            topic_id=TOPIC_ID,
            partition_states=(
                LeaderAndIsrPartitionState(
                    partition_index=0,
                    controller_epoch=1,
                    leader=1,
                    leader_epoch=6,
                    isr=(0, 1),
                    partition_epoch=1,
                    replicas=(0, 1),
                ),
            ),
        ),
    ),
    live_leaders=(),
)
FORGETS = UpdateMetadataRequest(
    controller_id=7, controller_epoch=1, topic_states=(), live_brokers=()
)
ORDERS: list[Any] = [STOPS, DEPOSES, FORGETS]
