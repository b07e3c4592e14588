#!/bin/sh
# Points a name at the active site in dnsmasq. Arguments: the name, the folder that dnsmasq reads
# with --hostsdir, and SITE=ADDRESS for each site (dc1=10.1.0.10 dc2=10.2.0.10).
# Writes the record in one step, so that a repetition changes nothing and no reader sees half of it.
set -eu
name=$1 folder=$2
shift 2
for pair in "$@"; do
    [ "${pair%%=*}" = "$KAFKA_DR_ACTIVE" ] || continue
    printf '%s %s\n' "${pair#*=}" "$name" > "$folder/.$name.new"
    mv "$folder/.$name.new" "$folder/$name"
    echo "$name is ${pair#*=}"
    exit 0
done
echo "no address is given for the site $KAFKA_DR_ACTIVE" >&2
exit 1
