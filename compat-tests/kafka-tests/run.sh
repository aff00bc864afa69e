#!/bin/bash
# run.sh kafka | ottla BINARY | HOST:PORT "" [TESTS] : Kafka's own tests, each with a cluster of real Kafka or of Ottla, or all
# on one running broker. TESTS, a regular expression of Class.method, runs some. The list is in `classes`, or $CLASSES.
set -eu
here=$(dirname "$(readlink -f "$0")")
"$here/setup.sh"
libs=$OTTLA_CACHE/kafka-tests-$KAFKA_TESTS/libs
# our classes stand before those of Kafka that they replace
javac --release 17 -nowarn -d "$WORK/classes" -cp "$libs/*" $(find "$here"/src -name '*.java' -not -path '*/oracle/*') >&2
if [ "$1" = kafka ]; then
  javac --release 17 -nowarn -d "$WORK/oracle" -cp "$KAFKA_LIBS/*" "$here"/src/oracle/*.java "$here/src/harness/Format.java" >&2
fi
mkdir -p "$WORK/taken"
# most of the time tests wait: classes run beside each other, fewer where brokers are heavy
case $1 in ottla) shares=4 ;; kafka) shares=2 ;; *) shares=1 ;; esac
running=()
for share in $(seq 0 $((shares - 1))); do
  room=$WORK/$share
  mkdir -p "$room/tmp"
  WORK=$room java -Xmx768m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dshare="$share" -Dshares=$shares \
    -Dlog="$room/tests.log" -Djava.io.tmpdir="$room/tmp" -Dlog4j2.configurationFile="$here/log4j2.properties" \
    -Doracle.classes="$WORK/oracle:$KAFKA_LIBS/*" -cp "$WORK/classes:$libs/*" \
    harness.Main "${CLASSES:-$here/classes}" "$1" "${2:-}" "${3:-}" "$WORK/taken" 2> "$room/stderr" &
  running+=($!)
done
code=0
for one in "${running[@]}"; do wait "$one" || code=1; done
sort "$WORK"/*/seconds > "$WORK/seconds"
exit $code
