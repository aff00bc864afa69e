#!/bin/bash
# run.sh HOST:PORT : batches and streams of Spark from and to Kafka, in one process; the checks are in Spark.java
set -eu
here=$(dirname "$(readlink -f "$0")") libs=$OTTLA_CACHE/spark-$SPARK/libs
javac -nowarn -d "$WORK/classes" -cp "$libs/*" "$here/Spark.java" "$here/../../java/compat/Kit.java"
cd "$WORK"
# what Spark's own launcher opens of the Java runtime
opens=()
for package in java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent \
  java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar; do
  opens+=("--add-opens=java.base/$package=ALL-UNNAMED")
done
exec java -Xmx1g -XX:+UseSerialGC "${opens[@]}" -cp "$WORK/classes:$libs/*" compat.Spark "$1"
