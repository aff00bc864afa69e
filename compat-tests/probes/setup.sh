#!/bin/bash
# setup.sh : builds the probes below $OTTLA_CACHE unless that was done for these very sources and pins.
set -eu
cd "$(dirname "$(readlink -f "$0")")"
set -a; . ../versions; set +a
export OTTLA_CACHE=${OTTLA_CACHE:-$HOME/.cache/ottla-compat}
built=$OTTLA_CACHE/probes
stamp=$(cat pom.xml ../versions $(find src -name '*.java' | LC_ALL=C sort) | sha256sum)
[ "$(cat "$built/stamp" 2> /dev/null)" = "$stamp" ] && exit 0
rm -rf "$built"
mkdir -p "$built"
mvn -q -B -Dtarget="$built" compile \
  "org.apache.maven.plugins:maven-dependency-plugin:$MAVEN_DEPENDENCY_PLUGIN:copy-dependencies" \
  -DincludeScope=runtime -DoutputDirectory="$built/lib"
echo "$stamp" > "$built/stamp"
