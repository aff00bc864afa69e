#!/bin/bash
# setup.sh : a Python environment with confluent-kafka (librdkafka inside) in the cache
set -eu
room=$OTTLA_CACHE/confluent-kafka-$CONFLUENT_KAFKA
[ -f "$room/complete" ] && exit 0
rm -rf "$room"
python3 -m venv "$room"
"$room/bin/pip" -q --disable-pip-version-check install "confluent-kafka==$CONFLUENT_KAFKA"
touch "$room/complete"
