#!/bin/bash
# setup.sh : Java client 2.8.2
exec "$(dirname "$0")/../../java/setup.sh" "$JAVA_CLIENT_OLD"
