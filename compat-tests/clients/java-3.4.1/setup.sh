#!/bin/bash
# setup.sh : Java client 3.4.1
exec "$(dirname "$0")/../../java/setup.sh" "$JAVA_CLIENT_3_4"
