#!/bin/bash
# run.sh HOST:PORT : what Java programs do with client 2.8.2; the checks are in ../../java
exec "$(dirname "$0")/../../java/run.sh" "$JAVA_CLIENT_OLD" "$1"
