#!/bin/bash
# run.sh HOST:PORT : what Java programs do with client 3.4.1; the checks are in ../../java
exec "$(dirname "$0")/../../java/run.sh" "$JAVA_CLIENT_3_4" "$1"
