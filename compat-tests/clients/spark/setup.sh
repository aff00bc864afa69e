#!/bin/bash
# setup.sh : the jars of Spark with its Kafka source and sink, in the cache
set -eu
room=$OTTLA_CACHE/spark-$SPARK
[ -f "$room/complete" ] && exit 0
rm -rf "$room"; mkdir -p "$room"
mvn -q -B -f "$(dirname "$(readlink -f "$0")")/pom.xml" -Dspark="$SPARK" -Dscala="$SPARK_SCALA" \
  "org.apache.maven.plugins:maven-dependency-plugin:$MAVEN_DEPENDENCY_PLUGIN:copy-dependencies" \
  -DincludeScope=runtime -DoutputDirectory="$room/libs"
touch "$room/complete"
