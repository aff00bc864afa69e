#!/bin/bash
# setup.sh CLIENT : the jars of one version of the Java client, in the cache
set -eu
room=$OTTLA_CACHE/java-client-$1
[ -f "$room/complete" ] && exit 0
rm -rf "$room"; mkdir -p "$room"
mvn -q -B -f "$(dirname "$(readlink -f "$0")")/pom.xml" -Dclient="$1" -Dslf4j="$SLF4J" \
  "org.apache.maven.plugins:maven-dependency-plugin:$MAVEN_DEPENDENCY_PLUGIN:copy-dependencies" \
  -DincludeScope=runtime -DoutputDirectory="$room/libs"
touch "$room/complete"
