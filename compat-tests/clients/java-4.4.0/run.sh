#!/bin/bash
# run.sh HOST:PORT : what Java programs do with client 4.4.0; the checks are in ../../java
exec "$(dirname "$0")/../../java/run.sh" "$JAVA_CLIENT_NEW" "$1"
