#!/bin/sh
# Points a Service of the type ExternalName at the active site. Arguments: the namespace, the
# Service, and SITE=HOST for each site. It runs where kubectl may patch that Service.
set -eu
namespace=$1 service=$2
shift 2
for pair in "$@"; do
    [ "${pair%%=*}" = "$KAFKA_DR_ACTIVE" ] || continue
    ${KUBECTL:-kubectl} patch service "$service" --namespace "$namespace" --type merge \
        --patch "{\"metadata\":{\"annotations\":{\"kafka-dr/epoch\":\"$KAFKA_DR_EPOCH\"}},\"spec\":{\"externalName\":\"${pair#*=}\"}}"
    exit 0
done
echo "no host is given for the site $KAFKA_DR_ACTIVE" >&2
exit 1
