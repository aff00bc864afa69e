#!/bin/bash
# setup.sh : a Python environment with aiokafka and its codecs in the cache
set -eu
room=$OTTLA_CACHE/aiokafka-$AIOKAFKA
[ -f "$room/complete" ] && exit 0
rm -rf "$room"
python3 -m venv "$room"
"$room/bin/pip" -q --disable-pip-version-check install "aiokafka==$AIOKAFKA" "cramjam==$PYTHON_CRAMJAM"
touch "$room/complete"
