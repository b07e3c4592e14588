"""Administrators' tools are told the type and the meaning of each setting of a broker."""

import pytest

from broker.config import ACCEPTED_WITHOUT_EFFECT, SETTINGS
from broker.dynamic_config import FENCE_SETTINGS, FOLLOWER_RATE, LEADER_RATE
from broker.log.config import ConfigType
from broker.setting_descriptions import MEANINGS, explained


def test_every_setting_has_a_meaning() -> None:
    shown = (*SETTINGS, *ACCEPTED_WITHOUT_EFFECT, *FENCE_SETTINGS, LEADER_RATE, FOLLOWER_RATE)
    assert [name for name in shown if not explained(name)[1]] == []
    assert MEANINGS.keys() <= SETTINGS.keys()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("auto.create.topics.enable", ConfigType.BOOLEAN),
        ("num.partitions", ConfigType.INT),
        ("offsets.topic.compression.codec", ConfigType.INT),
        ("offsets.topic.replication.factor", ConfigType.SHORT),
        ("log.retention.ms", ConfigType.LONG),
        ("replica.lag.time.max.ms", ConfigType.LONG),
        ("log.cleaner.io.buffer.load.factor", ConfigType.DOUBLE),
        ("log.cleanup.policy", ConfigType.LIST),
        ("sasl.enabled.mechanisms", ConfigType.LIST),
        ("listeners", ConfigType.STRING),
        ("ssl.key.password", ConfigType.PASSWORD),
        ("zookeeper.password.file", ConfigType.STRING),
        ("num.io.threads", ConfigType.INT),
        ("somebody.elses", ConfigType.STRING),
    ],
)
def test_a_setting_has_the_type_that_kafka_gives_it(name: str, kind: ConfigType) -> None:
    assert explained(name)[0] is kind
