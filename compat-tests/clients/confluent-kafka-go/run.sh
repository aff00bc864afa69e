#!/bin/bash
# run.sh HOST:PORT : confluent-kafka-go's own integration tests; they read their settings from a file beside them
set -u
go=$(dirname "$(readlink -f "$0")")/../../go
cd "$WORK" || exit 2
cat > testconf.json <<JSON
{ "Brokers": "$1", "TopicName": "compat-go", "GroupID": "compat-go", "PerfMsgCount": 10000, "PerfMsgSize": 100,
  "Config": ["api.version.request=true"] }
JSON
timeout 165 "$OTTLA_CACHE/confluent-kafka-go-$CONFLUENT_KAFKA_GO/integration.test" -test.v -test.timeout 160s \
  -test.run TestIntegration > tests.log 2>&1
exec "$go/verdicts.sh" tests.log
