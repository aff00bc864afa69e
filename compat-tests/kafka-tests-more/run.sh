#!/bin/bash
# run.sh kafka | ottla BINARY | HOST:PORT "" [TESTS] : those of Kafka's own tests that take too long for CI
here=$(dirname "$(readlink -f "$0")")
CLASSES=$here/classes exec "$here/../kafka-tests/run.sh" "$@"
