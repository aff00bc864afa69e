#!/bin/bash
# run.sh HOST:PORT : what programs do with confluent-kafka-python, checked in checks.py
cd "$(dirname "$0")" || exit 2
exec "$OTTLA_CACHE/confluent-kafka-$CONFLUENT_KAFKA/bin/python" -B checks.py "$1"
