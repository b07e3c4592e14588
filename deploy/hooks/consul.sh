#!/bin/sh
# Tells Consul which site is active: a key, by default kafka/active, gets the site, its epoch and
# its brokers. CONSUL_HTTP_ADDR says where Consul is, CONSUL_HTTP_TOKEN who we are to it.
set -eu
answer=$(curl --silent --show-error --fail --max-time 8 --request PUT \
    ${CONSUL_HTTP_TOKEN:+--header "X-Consul-Token: $CONSUL_HTTP_TOKEN"} \
    --data "{\"site\":\"$KAFKA_DR_ACTIVE\",\"epoch\":$KAFKA_DR_EPOCH,\"bootstrap\":\"$KAFKA_DR_BOOTSTRAP\"}" \
    "${CONSUL_HTTP_ADDR:-http://127.0.0.1:8500}/v1/kv/${1:-kafka/active}")
# Consul says "false" with status 200 when it has not taken the value.
[ "$answer" = true ] || { echo "Consul answered $answer" >&2; exit 1; }
