#!/bin/bash
# setup.sh : builds the probes in the cache, unless that was done for these very sources and pins
set -eu
cd "$(dirname "$(readlink -f "$0")")"
set -a; . ../versions; set +a
room=${OTTLA_CACHE:-$HOME/.cache/ottla-compat}/probes
mapfile -t sources < <(find src -name '*.java' | LC_ALL=C sort)
stamp=$(cat setup.sh pom.xml "${sources[@]}" | sha256sum)$KAFKA
[ "$(cat "$room/complete" 2> /dev/null)" = "$stamp" ] && exit 0
rm -rf "$room"; mkdir -p "$room"
mvn -q -B -Dkafka="$KAFKA" \
  "org.apache.maven.plugins:maven-dependency-plugin:$MAVEN_DEPENDENCY_PLUGIN:copy-dependencies" \
  -DincludeScope=runtime -DoutputDirectory="$room/libs"
javac --release 17 -Xlint:all,-try,-serial -Werror -d "$room/classes" -cp "$room/libs/*" "${sources[@]}"
echo "$stamp" > "$room/complete"
