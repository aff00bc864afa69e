#!/bin/bash
# setup.sh : what is left is read by confluent-kafka-python (CONFLUENT_KAFKA)
exec "$(dirname "$0")/../clients/confluent-kafka-python/setup.sh"
