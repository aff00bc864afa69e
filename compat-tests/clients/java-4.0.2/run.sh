#!/bin/bash
# run.sh HOST:PORT : what Java programs do with client 4.0.2; the checks are in ../../java
exec "$(dirname "$0")/../../java/run.sh" "$JAVA_CLIENT_4_0" "$1"
