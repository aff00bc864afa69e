#!/bin/bash
# setup.sh : the jars of Kafka's own tests, in the cache
set -eu
room=$OTTLA_CACHE/kafka-tests-$KAFKA_TESTS
[ -f "$room/complete" ] && exit 0
rm -rf "$room"; mkdir -p "$room"
mvn -q -B -f "$(dirname "$(readlink -f "$0")")/pom.xml" -Dkafka="$KAFKA_TESTS" -Dscala="$KAFKA_SCALA" -Dlog4j="$LOG4J" \
  -Dbouncycastle="$BOUNCYCASTLE" -Djunit="$JUNIT" -Djunit4="$JUNIT4" -Djunit-platform="$JUNIT_PLATFORM" -Dmockito="$MOCKITO" \
  "org.apache.maven.plugins:maven-dependency-plugin:$MAVEN_DEPENDENCY_PLUGIN:copy-dependencies" \
  -DincludeScope=runtime -DoutputDirectory="$room/libs" >&2
touch "$room/complete"
