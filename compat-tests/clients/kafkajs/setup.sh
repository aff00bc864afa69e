#!/bin/bash
# setup.sh : kafkajs in the cache; it depends on nothing else
set -eu
room=$OTTLA_CACHE/kafkajs-$KAFKAJS
[ -f "$room/complete" ] && exit 0
rm -rf "$room"; mkdir -p "$room"; cd "$room"
echo '{ "private": true }' > package.json
npm install --no-audit --no-fund --save-exact "kafkajs@$KAFKAJS"
touch complete
