#!/bin/bash
# setup.sh : builds the probes in the cache, unless that was done for these very sources and pins; prints where
set -eu
cd "$(dirname "$(readlink -f "$0")")"
set -a; . ../versions; set +a
cache=${OTTLA_CACHE:-$HOME/.cache/ottla-compat}
mapfile -t sources < <(find src -name '*.java' | LC_ALL=C sort)
room=$cache/probes-$KAFKA-$(cat setup.sh pom.xml "${sources[@]}" | sha256sum | head -c 12)
if [ ! -d "$room" ]; then
  mkdir -p "$cache"
  new=$(mktemp -d "$cache/probes-new-XXXXXX")
  trap 'rm -rf "$new"' EXIT
  mvn -q -B -Dkafka="$KAFKA" \
    "org.apache.maven.plugins:maven-dependency-plugin:$MAVEN_DEPENDENCY_PLUGIN:copy-dependencies" \
    -DincludeScope=runtime -DoutputDirectory="$new/libs" >&2
  javac --release 17 -Xlint:all,-try,-serial -Werror -d "$new/classes" -cp "$new/libs/*" "${sources[@]}" >&2
  mv -T "$new" "$room" 2> /dev/null || [ -d "$room" ] # another run was faster
fi
echo "$room"
