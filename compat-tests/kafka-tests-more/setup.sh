#!/bin/bash
# setup.sh : the jars of Kafka's own tests, in the cache
exec "$(dirname "$(readlink -f "$0")")/../kafka-tests/setup.sh"
