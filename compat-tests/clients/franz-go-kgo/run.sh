#!/bin/bash
# run.sh HOST:PORT : franz-go's own tests of its package kgo, those that need a broker (the file `tests`); chains of
# 5000 records instead of 500 000
set -u
here=$(dirname "$(readlink -f "$0")")
tests=$(paste -sd '|' "$here/tests")
room=$OTTLA_CACHE/franz-go-kgo-$FRANZ_GO
cd "$WORK" || exit 2
export KGO_SEEDS=$1 KGO_TEST_RF=1 KGO_TEST_RECORDS=5000 KGO_LOG_LEVEL=none
timeout 190 "$room/kgo.test" -test.v -test.timeout 180s -test.parallel 2 \
  -test.run "^($tests)\$" > tests.log 2>&1
exec "$here/../../go/verdicts.sh" tests.log
