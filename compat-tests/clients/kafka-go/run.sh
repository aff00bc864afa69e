#!/bin/bash
# run.sh HOST:PORT : kafka-go's own tests of its type Client; those of its readers and connections depend on load
set -u
go=$(dirname "$(readlink -f "$0")")/../../go
cd "$WORK" || exit 2
export COMPAT_BROKER=$1 KAFKA_VERSION=$KAFKA
timeout 300 "$OTTLA_CACHE/kafka-go-$KAFKA_GO/kafka-go.test" -test.v -test.timeout 290s -test.run '^TestClient' \
  > tests.log 2>&1
exec "$go/verdicts.sh" tests.log
