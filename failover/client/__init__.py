"""A consumer and a producer for Python applications that follow the active site.

`SiteConsumer` and `SiteProducer` are used like confluent-kafka's; their modules say what they do
while the site changes.
"""

from failover.client.active_site import WitnessUnreachable
from failover.client.consumer import RebalanceCallbacks, SiteConsumer
from failover.client.producer import SiteProducer

__all__ = ["RebalanceCallbacks", "SiteConsumer", "SiteProducer", "WitnessUnreachable"]
