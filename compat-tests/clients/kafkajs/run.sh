#!/bin/bash
# run.sh HOST:PORT : what JavaScript programs do with kafkajs; the checks are in the .js files
export NODE_PATH=$OTTLA_CACHE/kafkajs-$KAFKAJS/node_modules KAFKAJS_NO_PARTITIONER_WARNING=1
exec node "$(dirname "$0")/main.js" "$1"
