#!/bin/bash
# run.sh HOST:PORT [--only C001,C011] [--self-check] : runs the probes against a broker that may be littered with
# topics and groups. Prints `PASS name -- note` or `FAIL name -- why` for each; the exit code is 1 if one failed.
# $BROKER_CTL restarts the broker (`term`, `kill`) and runs others (`spawn FILE`, `end HOST:PORT`): see Outside.java.
# --self-check spoils answers: a probe passes when it notices.
cd "$(dirname "$(readlink -f "$0")")" || exit 2
room=$(./setup.sh) || exit 2
exec java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$room/classes:$room/libs/*" probes.Main "$@"
