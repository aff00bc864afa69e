#!/bin/bash
# setup.sh : Java client 3.0.2
exec "$(dirname "$0")/../../java/setup.sh" "$JAVA_CLIENT_3_0"
