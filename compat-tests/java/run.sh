#!/bin/bash
# run.sh CLIENT HOST:PORT : compiles the checks against one version of the Java client and runs them
set -eu
libs=$OTTLA_CACHE/java-client-$1/libs
javac -nowarn -d "$WORK/classes" -cp "$libs/*" "$(dirname "$(readlink -f "$0")")"/compat/*.java
exec java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$WORK/classes:$libs/*" compat.Main "$2"
