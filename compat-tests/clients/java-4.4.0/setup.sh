#!/bin/bash
# setup.sh : Java client 4.4.0
exec "$(dirname "$0")/../../java/setup.sh" "$JAVA_CLIENT_NEW"
