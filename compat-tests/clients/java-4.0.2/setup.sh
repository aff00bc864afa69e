#!/bin/bash
# setup.sh : Java client 4.0.2
exec "$(dirname "$0")/../../java/setup.sh" "$JAVA_CLIENT_4_0"
