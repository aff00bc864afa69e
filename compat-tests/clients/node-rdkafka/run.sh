#!/bin/bash
# run.sh HOST:PORT : node-rdkafka's own end-to-end specs, without those that FINDINGS.md names. It may hang at its exit.
set -u
here=$(dirname "$(readlink -f "$0")")
cd "$OTTLA_CACHE/node-rdkafka-$NODE_RDKAFKA/package" || exit 2
export KAFKA_HOST=$1
specs() { timeout 200 npx mocha --exit --timeout 30000 --reporter json "$@" 'e2e/*.spec.js'; }
# what is left out is begun with: it makes the topic that the others take for granted
specs --grep consumeOnce > "$WORK/first.json" 2> "$WORK/mocha.log"
specs --grep 'consumeLoop|consumeOnce' --invert > "$WORK/report.json" 2>> "$WORK/mocha.log"
exec node "$here/verdicts.js" "$WORK/report.json"
