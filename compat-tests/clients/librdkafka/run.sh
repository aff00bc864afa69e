#!/bin/bash
# run.sh HOST:PORT [NUMBERS] : of librdkafka's own broker tests these, or 45 that do not depend on load or on Kafka's
# shell tools. Its summary table is cut off when a failed test leaves threads behind, so the lines of each test count.
set -u
source=$OTTLA_CACHE/librdkafka-$RDKAFKA_SYS/source
numbers=0001,0002,0003,0005,0007,0008,0011,0012,0013,0014,0016,0019,0020,0021,0022,0029,0031,0034,0035,0036,0039,0040
numbers+=,0041,0042,0044,0048,0054,0056,0057,0060,0063,0064,0065,0067,0070,0073,0082,0083,0086,0090,0099,0110,0112,0130,0140
numbers=${2:-$numbers}
mkdir -p "$WORK/tests"; cd "$WORK/tests" || exit 2
printf 'metadata.broker.list=%s\ntest.topic.random=true\ntest.timeout.multiplier=2\n' "$1" > test.conf
for file in "$source"/tests/*; do ln -sf "$file" .; done 2> /dev/null
rm -f test.conf; printf 'metadata.broker.list=%s\ntest.topic.random=true\ntest.timeout.multiplier=2\n' "$1" > test.conf
export LD_LIBRARY_PATH=$source/src:$source/src-cpp TEST_KAFKA_VERSION=$KAFKA BROKERS=$1
# -L leaves out tests that never touch a broker; three at once
TESTS=$numbers ./test-runner -L -p3 > "$WORK/runner.log" 2>&1
sed -i 's/\x1b\[[0-9;]*m//g' "$WORK/runner.log"
{
  grep -aoE 'Test [0-9]{4}_[A-Za-z0-9_]+ (PASSED|SKIPPED)' "$WORK/runner.log" | awk '{print $2, ($3 == "PASSED" ? "PASS" : "SKIP")}'
  grep -aoE '^### Test "[0-9]{4}_[A-Za-z0-9_]+' "$WORK/runner.log" | sed 's/.*"\(.*\)/\1 FAIL/'
} | sort -u | while read -r name verdict; do
  case $verdict in
    FAIL) echo "FAIL $name -- $(grep -aE "^### Test \"$name" "$WORK/runner.log" | head -1)" ;;
    *) echo "$verdict $name" ;;
  esac
done
