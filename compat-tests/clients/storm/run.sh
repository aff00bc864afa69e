#!/bin/bash
# run.sh HOST:PORT : topologies of Storm with its Kafka spout and bolt, in one process; the checks are in Storm.java
set -eu
here=$(dirname "$(readlink -f "$0")") libs=$OTTLA_CACHE/storm-$STORM/libs
javac -nowarn -d "$WORK/classes" -cp "$libs/*" "$here/Storm.java" "$here/../../java/compat/Kit.java"
cd "$WORK"
exec java -Xmx1g -XX:+UseSerialGC -cp "$WORK/classes:$libs/*" compat.Storm "$1"
