#!/bin/bash
# setup.sh : the jars of Storm and of the Java client that its spout was built against, in the cache
set -eu
room=$OTTLA_CACHE/storm-$STORM
[ -f "$room/complete" ] && exit 0
rm -rf "$room"; mkdir -p "$room"
mvn -q -B -f "$(dirname "$(readlink -f "$0")")/pom.xml" -Dstorm="$STORM" -Dclient="$JAVA_CLIENT_3_9" \
  "org.apache.maven.plugins:maven-dependency-plugin:$MAVEN_DEPENDENCY_PLUGIN:copy-dependencies" \
  -DincludeScope=runtime -DoutputDirectory="$room/libs"
touch "$room/complete"
