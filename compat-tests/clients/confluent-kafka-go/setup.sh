#!/bin/bash
# setup.sh : confluent-kafka-go's own integration tests, which its module carries, built into one program
set -eu
here=$(dirname "$(readlink -f "$0")")
room=$OTTLA_CACHE/confluent-kafka-go-$CONFLUENT_KAFKA_GO
[ -f "$room/complete" ] && exit 0
rm -rf "$room"; mkdir -p "$room"; cd "$room"
"$here/../../go/source.sh" "github.com/confluentinc/confluent-kafka-go/v2@$CONFLUENT_KAFKA_GO"
python3 -B "$here/without_docker.py" source/kafka/integration_test.go
(cd source/kafka && go test -mod=mod -c -o "$room/integration.test" .)
rm -rf source; touch complete
