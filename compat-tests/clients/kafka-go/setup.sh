#!/bin/bash
# setup.sh : kafka-go's own tests, which its module carries, built into one program. The broker's address is written
# into them; it comes out of the environment instead, but where a constant is wanted.
set -eu
go=$(dirname "$(readlink -f "$0")")/../../go
room=$OTTLA_CACHE/kafka-go-$KAFKA_GO
[ -f "$room/complete" ] && exit 0
rm -rf "$room"; mkdir -p "$room"; cd "$room"
"$go/source.sh" "github.com/segmentio/kafka-go@$KAFKA_GO"
cd source; rm -f example*_test.go
for file in *_test.go; do
  sed -i -E '/^\s*(const |kafka\s+=)/!s/"localhost:9092"/compatBroker/g; s/TCP\("localhost"\)/TCP(compatBroker)/' "$file"
done
printf 'package kafka\n\nimport "os"\n\nvar compatBroker = os.Getenv("COMPAT_BROKER")\n' > compat_test.go
go test -mod=mod -c -o "$room/kafka-go.test" .
cd ..; rm -rf source; touch complete
