#!/bin/bash
# setup.sh : the load of the jbod suite is made by confluent-kafka-python (CONFLUENT_KAFKA)
exec "$(dirname "$0")/../clients/confluent-kafka-python/setup.sh"
