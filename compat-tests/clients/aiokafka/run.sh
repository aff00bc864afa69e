#!/bin/bash
# run.sh HOST:PORT : what asyncio programs do with aiokafka; the checks are in the .py files
cd "$(dirname "$0")" || exit 2
exec "$OTTLA_CACHE/aiokafka-$AIOKAFKA/bin/python" -B main.py "$1"
