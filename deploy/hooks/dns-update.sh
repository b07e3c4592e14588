#!/bin/sh
# Points a name at the active site by a dynamic update (RFC 2136), as BIND, Knot and PowerDNS take
# it. Arguments: the name, the server, the file of the TSIG key, and SITE=TARGET for each site.
set -eu
name=$1 server=$2 key=$3
shift 3
for pair in "$@"; do
    [ "${pair%%=*}" = "$KAFKA_DR_ACTIVE" ] || continue
    nsupdate -k "$key" <<EOF
server $server
update delete $name. CNAME
update add $name. 30 CNAME ${pair#*=}.
send
EOF
    echo "$name is ${pair#*=}"
    exit 0
done
echo "no target is given for the site $KAFKA_DR_ACTIVE" >&2
exit 1
