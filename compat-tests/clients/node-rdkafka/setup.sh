#!/bin/bash
# setup.sh : node-rdkafka with its end-to-end specs, which its package carries, and the librdkafka in it, built by one job:
# its makefile does not wait for its own configure step. The headers of Node come from this machine.
set -eu
room=$OTTLA_CACHE/node-rdkafka-$NODE_RDKAFKA
[ -f "$room/complete" ] && exit 0
rm -rf "$room"; mkdir -p "$room"; cd "$room"
npm pack -q "node-rdkafka@$NODE_RDKAFKA"
tar xzf "node-rdkafka-$NODE_RDKAFKA.tgz"
(cd package && JOBS=1 npm_config_nodedir=/usr npm install --no-audit --no-fund)
touch complete
